#include "process/tree/child.h"

#include <poll.h>

#include <cassert>
#include <cerrno>
#include <optional>

#include "base/async/async_tokens.h"
#include "process/tree/child_parts.h"
#include "process/tree/proc_entry.h"

namespace clawdforge {

namespace {

using Parts = Child::Parts;

std::unexpected<Failure> not_reading() {
  return fail(Errc::gone, "not_reading", "The program does not read its input any more.");
}

// None: there is nothing yet. Empty: the end.
std::optional<std::string> read_now(int descriptor, std::size_t bytes_max) {
  std::string bytes;
  ssize_t count = -1;
  bytes.resize_and_overwrite(bytes_max, [&](char* buffer, std::size_t size) {
    do {
      count = ::read(descriptor, buffer, size);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  });
  if (count < 0 && errno == EAGAIN) return std::nullopt;
  return bytes;
}

// These take the parts and not the Child: it may be destroyed while they wait. No buffer
// is held meanwhile.
Async<std::string> read_from(std::shared_ptr<Parts> parts, std::size_t bytes_max) {
  while (parts->output.is_open()) {
    auto bytes = read_now(parts->output.native_handle(), bytes_max);
    if (bytes) co_return std::move(*bytes);
    if (parts->is_gone) break;
    co_await parts->output.async_wait(Parts::Stream::wait_read, kAwait);
  }
  co_return std::string();
}

Async<void> write_to(std::shared_ptr<Parts> parts, std::string bytes) {
  std::string_view left = bytes;
  while (!left.empty()) {
    if (!parts->input.is_open()) co_return not_reading();
    const ssize_t count = ::write(parts->input.native_handle(), left.data(), left.size());
    if (count >= 0) {
      left.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      co_await parts->input.async_wait(Parts::Stream::wait_write, kAwait);
    } else if (errno != EINTR) {
      co_return not_reading();
    }
  }
  co_return Result<void>();
}

Task<ExitStatus> exit_of(std::shared_ptr<Parts> parts) {
  const std::optional<ExitStatus>& status = parts->exit_status;
  while (true) {
    if (status) co_return *status;
    co_await parts->changed.wait();
  }
}

Task<void> gone_of(std::shared_ptr<Parts> parts) {
  while (!parts->is_gone) co_await parts->changed.wait();
}

}  // namespace

Child::Child(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

Child::~Child() { let_go(); }

IoExecutor Child::executor() const { return parts_->pidfd.get_executor(); }

ProcessId Child::id() const {
  // Until it is reaped, no other process can have its id.
  if (parts_->start_time == 0 && !parts_->is_reaped) {
    if (const auto entry = proc_entry(parts_->pid)) parts_->start_time = entry->start_time;
  }
  return {parts_->pid, parts_->start_time};
}

Async<void> Child::write(std::string bytes) { return write_to(parts_, std::move(bytes)); }

void Child::close_input() { parts_->close_input(); }

bool Child::has_input_reader() const {
  if (!parts_->input.is_open()) return false;
  pollfd pipe{.fd = parts_->input.native_handle(), .events = 0, .revents = 0};
  return ::poll(&pipe, 1, 0) == 0;
}

Async<std::string> Child::read(std::size_t bytes_max) {
  assert(bytes_max > 0);
  return read_from(parts_, bytes_max);
}

std::string_view Child::error_tail() const { return parts_->error_tail(); }

Descriptor Child::take_outlet() { return std::move(parts_->outlet); }

Task<ExitStatus> Child::exit() { return exit_of(parts_); }

void Child::let_go() { parts_->let_go(); }

Task<void> Child::gone() { return gone_of(parts_); }

}  // namespace clawdforge
