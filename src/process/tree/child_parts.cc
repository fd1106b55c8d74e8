#include "process/tree/child_parts.h"

#include <signal.h>

#include <array>
#include <cerrno>

extern "C" {  // which this header of glibc 2.36 forgets
#include <sys/pidfd.h>
}

namespace clawdforge {

namespace {

// All that a pipe holds by default, in one step.
constexpr std::size_t kDrainBytes = 64 * 1024;

bool move_into(Child::Parts::Stream& stream, Descriptor& descriptor) {
  boost::system::error_code error;
  stream.assign(descriptor.number(), error);
  if (error) return false;
  descriptor.release();
  return true;
}

void close(Child::Parts::Stream& stream) {
  boost::system::error_code ignored;  // of a pipe, closing cannot fail in a way that matters
  stream.close(ignored);
}

void end_waits(Child::Parts::Stream& stream) {
  boost::system::error_code ignored;  // it fails only for one that is closed
  stream.cancel(ignored);
}

}  // namespace

Child::Parts::Parts(IoExecutor executor, std::size_t tail_bytes_max)
    : pidfd(executor),
      input(executor),
      output(executor),
      errors(executor),
      report(executor),
      tail_bytes_max_(tail_bytes_max) {}

bool Child::Parts::take(Launched& launched) {
  if (!move_into(input, launched.input) || !move_into(output, launched.output) ||
      !move_into(errors, launched.errors) || !move_into(report, launched.report) ||
      !move_into(pidfd, launched.pidfd)) {
    return false;
  }
  pid = launched.pid;
  lifeline = std::move(launched.lifeline);
  outlet = std::move(launched.outlet);
  return true;
}

void Child::Parts::let_go() {
  if (!is_let_go) {
    is_let_go = true;
    lifeline.close();
    // Without a PID namespace an agent can stop its launcher.
    signal_launcher(SIGCONT);
    changed.notify_all();
  }
  close(input);
  close(output);
}

void Child::Parts::signal_launcher(int number) {
  if (is_reaped || !pidfd.is_open()) return;
  ::pidfd_send_signal(pidfd.native_handle(), number, nullptr, 0);
}

void Child::Parts::close_input() { close(input); }

void Child::Parts::note_exit(ExitStatus status) {
  exit_status = status;
  changed.notify_all();
}

void Child::Parts::note_gone() {
  is_gone = true;
  lifeline.close();
  close(pidfd);
  close(report);
  close(input);
  // What the tree wrote last can still be read, but no reader may wait for more: if a process
  // outside the tree was given the pipe, its end would never come.
  end_waits(output);
  end_waits(errors);
  changed.notify_all();
}

bool Child::Parts::drain_errors() {
  static std::array<char, kDrainBytes> scratch;  // one for all: it is the io thread's
  ssize_t count = -1;
  do {
    count = ::read(errors.native_handle(), scratch.data(), scratch.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno == EAGAIN;
  if (count == 0) return false;
  tail_.append(scratch.data(), static_cast<std::size_t>(count));
  if (tail_.size() > 2 * tail_bytes_max_) tail_.erase(0, tail_.size() - tail_bytes_max_);
  return true;
}

std::string_view Child::Parts::error_tail() const {
  const std::string_view all = tail_;
  return all.size() <= tail_bytes_max_ ? all : all.substr(all.size() - tail_bytes_max_);
}

}  // namespace clawdforge
