#include "quota/budgets/parking.h"

#include <algorithm>
#include <memory>

#include "base/async/async_tokens.h"
#include "base/async/hang_up_subscription.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace {

// How often a parked ask looks whether it is still wanted, and whether a place has come free.
constexpr std::chrono::milliseconds kParkedLook{100};

}  // namespace

bool Parking::may_help(const Failure& refusal, Time now, Time deadline) {
  if (refusal.retry_after.count() <= 0) return false;
  const Cause cause = refusal.cause;
  if (cause == Cause::app_busy) return now < deadline;
  const bool is_of_limit = cause == Cause::app_limit || cause == Cause::account_limit ||
                           cause == Cause::model_limit || cause == Cause::rate_limit;
  return is_of_limit && now + refusal.retry_after < deadline;
}

Task<bool> Parking::wait(AppName app, Failure refusal, Time deadline, HangUp* hang_up) {
  const Time begun = std::chrono::steady_clock::now();
  if (is_stopping_ || !may_help(refusal, begun, deadline)) co_return false;
  if (parked_ >= kParkedMax || by_app_[app] >= kParkedMaxPerApp) co_return false;
  ++parked_;
  ++by_app_[app];
  // A place may come free at any time; the other refusals say when they end.
  const Time until =
      refusal.cause == Cause::app_busy ? begun + kParkedLook : begun + refusal.retry_after;
  const auto is_gone = std::make_shared<bool>(false);
  const HangUpSubscription subscription(hang_up, [is_gone] { *is_gone = true; });
  Timer timer(executor_);
  while (!is_stopping_ && !*is_gone && std::chrono::steady_clock::now() < until) {
    timer.expires_at(std::min(until, std::chrono::steady_clock::now() + kParkedLook));
    co_await timer.async_wait(kAwait);
  }
  --parked_;
  if (--by_app_[app] == 0) by_app_.erase(app);
  co_return !is_stopping_ && !*is_gone;
}

}  // namespace clawdforge
