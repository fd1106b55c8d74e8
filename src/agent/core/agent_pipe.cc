#include "agent/core/agent_pipe.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "agent/failure/agent_failure.h"
#include "base/async/async_tokens.h"

namespace clawdforge {
namespace {

// Short messages cost far more for each byte than one long message, and all that is read at once is
// handled before another app has its turn: so little is read at once, except inside a long message.
constexpr std::size_t kReadBytes = 8 * 1024;
constexpr std::size_t kLongReadBytes = 64 * 1024;
// After so many pieces others get their turn: a pipe that is always full would keep the
// thread for itself.
constexpr unsigned kPiecesAtOnce = 4;
constexpr std::chrono::milliseconds kMemoryLook{20};

}  // namespace

AgentPipe::AgentPipe(std::unique_ptr<Child> child, const AgentSetup& setup)
    : child_(std::move(child)),
      setup_(setup),
      deadline_(child_->executor()),
      outbox_shown_(setup.gauges.outbox_bytes),
      held_shown_(setup.gauges.line_bytes),
      held_(setup.open_memory()),
      tasks_(child_->executor()) {
  deadline_.expires_at(Timer::time_point::max());
}

ProcessMark AgentPipe::mark() const { return setup_.mark_of(*child_); }

std::string AgentPipe::error_tail() const { return setup_.shown_tail(child_->error_tail()); }

// Opening

void AgentPipe::begin_opening() {
  if (!std::exchange(is_begun_, true)) tasks_.spawn(await_end());
  is_opening_ = true;
  tasks_.spawn(watch_deadline());
}

void AgentPipe::begin_step() { deadline_.expires_after(setup_.start_max); }

void AgentPipe::end_opening() {
  is_opening_ = false;
  deadline_.cancel();
}

// Each step sets another deadline, which wakes this task up.
Task<void> AgentPipe::watch_deadline() {
  while (is_opening_) {
    const auto [error] = co_await deadline_.async_wait(kAwait);
    if (error || !is_opening_ || deadline_.expiry() > Timer::clock_type::now()) continue;
    end_for({.kind = Errc::timed_out,
             .code = "agent_start_timeout",
             .message = fmt::format(
                 "{} did not answer within {} s while it was started.", setup_.spec.name,
                 std::chrono::ceil<std::chrono::seconds>(setup_.start_max).count())});
    co_return;
  }
}

// Writing and reading

void AgentPipe::send(std::string_view bytes) {
  if (trouble_ || is_stopped_) return;
  outbox_.append(bytes);
  outbox_shown_.set(outbox_.size() + writing_bytes_);
  if (outbox_.size() + writing_bytes_ > kAgentOutboxBytesMax) {
    end_for(agent_failed("agent_not_reading",
                         fmt::format("{} does not read what it is sent.", setup_.spec.name)));
    return;
  }
  if (!std::exchange(is_writing_, true)) tasks_.spawn(write_out());
}

Task<void> AgentPipe::write_out() {
  while (!outbox_.empty()) {
    writing_bytes_ = outbox_.size();
    const auto written = co_await child_->write(std::exchange(outbox_, {}));
    writing_bytes_ = 0;
    outbox_shown_.set(outbox_.size());
    if (!written) {
      co_await end_without_input();
      co_return;
    }
  }
  is_writing_ = false;
}

// The agent does not read any more. Mostly it is ending: then its output and its exit tell why. One
// that lives on could never be told anything again, and is ended.
Task<void> AgentPipe::end_without_input() {
  if (!is_ending()) co_await ended_.wait_for(kAgentWindDownMax);
  if (is_ending()) co_return;
  end_for(agent_failed("agent_not_reading",
                       fmt::format("{} has closed its standard input.", setup_.spec.name)));
}

Task<std::optional<std::string>> AgentPipe::read() {
  if (++pieces_ % kPiecesAtOnce == 0) {
    co_await boost::asio::post(co_await boost::asio::this_coro::executor, kAwait);
  }
  auto piece = co_await child_->read(held_bytes_ < kReadBytes ? kReadBytes : kLongReadBytes);
  if (!piece || piece->empty()) co_return std::nullopt;
  co_return std::move(*piece);
}

// Only one of an app's agents at a time is read on in the middle of a large message.
Fit AgentPipe::try_to_hold(std::size_t bytes) {
  if (bytes > held_.bytes() && !held_.claim_growth()) return Fit::over_share;
  return held_.resize(bytes);
}

Task<void> AgentPipe::count_held(std::size_t bytes) {
  held_bytes_ = bytes;
  held_shown_.set(bytes);
  const std::size_t counted = bytes > kUncountedLineBytesMax ? bytes : 0;
  if (counted == 0) held_.end_growth();
  Fit fit = try_to_hold(counted);
  const auto give_up_at = Timer::clock_type::now() + kMemoryWaitMax;
  while (fit != Fit::fits && held_.could_hold(counted) && !is_ending() &&
         Timer::clock_type::now() < give_up_at) {
    co_await ended_.wait_for(kMemoryLook);
    if (held_.fits(counted)) fit = try_to_hold(counted);
  }
  if (const auto held = refused_by(fit); !held && !trouble_) end_for(held.error());
}

ByteHold AgentPipe::hand_over(std::size_t bytes) {
  held_.end_growth();
  return held_.split(bytes);
}

Task<void> AgentPipe::wait_for_nudge() { co_await nudged_.wait(); }

// Ends

void AgentPipe::end_for(Failure trouble) {
  if (!trouble_) trouble_ = std::move(trouble);
  child_->let_go();
}

void AgentPipe::stop() {
  is_stopped_ = true;
  child_->let_go();
  ended_.notify_all();
  nudge();
}

Task<void> AgentPipe::await_end() {
  status_ = co_await child_->exit();
  ended_.notify_all();
}

Task<Failure> AgentPipe::cause_of_end() {
  if (!is_ending()) co_await ended_.wait_for(kAgentWindDownMax);
  if (!is_ending()) {
    child_->let_go();
    while (!is_ending()) co_await ended_.wait();
  }
  Failure why = trouble_ ? *trouble_ : failure_of_end(setup_.spec, status_, child_->error_tail());
  if (!is_stopped_) report(why);
  co_return why;
}

void AgentPipe::report(const Failure& why) const { setup_.report_end(why, error_tail()); }

Task<void> AgentPipe::wind_down() {
  child_->close_input();
  if (is_begun_ && !is_ending()) co_await ended_.wait_for(kAgentWindDownMax);
  stop();
  end_opening();
  co_await tasks_.join();
  while (is_read_) co_await nudged_.wait();
  co_await child_->gone();
}

}  // namespace clawdforge
