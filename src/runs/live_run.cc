#include "runs/live_run.h"

#include <utility>

#include "base/refusals.h"
#include "quota/apps.h"
#include "runs/run_feed.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kRestartWait{5};

}  // namespace

std::unexpected<Failure> never_started(RunStop reason) {
  if (reason == RunStop::timed_out) {
    return fail_for_now(
        Errc::unavailable, "queue_timeout",
        "The run's time ended while it waited for a place; it is safe to try again.",
        std::chrono::seconds(2));
  }
  if (reason == RunStop::caller_gone) {
    return fail(Errc::gone, "cancelled", "The caller hung up before the run started.");
  }
  if (reason == RunStop::cancelled) {
    return fail(Errc::gone, "cancelled", "The run was cancelled before it started.");
  }
  if (reason == RunStop::revoked) return token_revoked();
  auto failed =
      fail_for_now(Errc::unavailable, "interrupted", "The gateway is shutting down.", kRestartWait);
  failed.error().cause = Cause::interrupted;
  return failed;
}

LiveRun::LiveRun(IoExecutor executor, Registry& registry, std::shared_ptr<const App> caller,
                 RunRequest asked, Ticket admitted)
    : app(std::move(caller)),
      request(std::move(asked)),
      ticket(std::move(admitted)),
      registry_(registry),
      entry_(registry.insert(registry.end(), this)),
      deadline_(executor) {}

LiveRun::~LiveRun() { registry_.erase(entry_); }

void LiveRun::start_deadline() {
  deadline_.expires_at(request.received + request.timeout);
  deadline_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto run = weak.lock();
    if (run && !error) run->stop(RunStop::timed_out);
  });
}

void LiveRun::stop(RunStop reason) {
  if (stop_ != RunStop::none || is_answered_) return;
  stop_ = reason;
  if (ticket) ticket->withdraw();
  if (shot) shot->stop();
  if (on_stop) on_stop();
}

void LiveRun::set_answer(Result<RunOutcome> outcome) {
  answer_ = std::move(outcome);
  is_answered_ = true;
  if (ticket) ticket->answered();
  if (request.feed) request.feed->close();
  deadline_.cancel();
  answered_.notify_all();
}

Async<RunOutcome> LiveRun::answer() {
  co_await answered();
  co_return std::move(answer_);
}

Task<void> LiveRun::answered() {
  while (!is_answered_) co_await answered_.wait();
}

}  // namespace clawdforge
