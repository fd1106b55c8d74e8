#include "quota/agent_breaker.h"

#include <algorithm>

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kLoginWait{30};
constexpr std::chrono::seconds kLimitWait{60};  // where the agent did not say how long
constexpr std::chrono::seconds kRateWait{10};   // the API asks to slow down, and that is all
// A time that an agent names may be misread, or the limit lifted: one run tries now and then.
constexpr std::chrono::seconds kShutMax = std::chrono::hours(1);
constexpr std::chrono::seconds kTrialWait{2};

// What the end of a run says about the login and its account, or about the model.
enum class Verdict { works, refused, unknown };

Verdict verdict_of(AgentBreaker::Scope scope, Cause cause) {
  const bool is_of_agent = scope == AgentBreaker::Scope::agent;
  switch (cause) {
    case Cause::agent_said_so:
      return Verdict::works;
    case Cause::login:
    case Cause::account_limit:
      return is_of_agent ? Verdict::refused : Verdict::unknown;
    case Cause::model_limit:
    case Cause::rate_limit:  // the login works, and another model may
      return is_of_agent ? Verdict::works : Verdict::refused;
    case Cause::other:
    case Cause::agent_missing:
    case Cause::agent_exited:
    case Cause::conversation_gone:
    case Cause::cancelled:
    case Cause::interrupted:
    case Cause::deadline:
    case Cause::maybe_kept:
    case Cause::not_begun:
    case Cause::ledger_away:
    case Cause::app_busy:
    case Cause::app_limit:
      break;
  }
  return Verdict::unknown;
}

std::chrono::seconds wait_after(Cause cause) {
  if (cause == Cause::login) return kLoginWait;
  return cause == Cause::rate_limit ? kRateWait : kLimitWait;
}

}  // namespace

bool AgentBreaker::shuts(Scope scope, Cause cause) {
  return verdict_of(scope, cause) == Verdict::refused;
}

void AgentBreaker::Pass::settle(std::optional<Failure>& failure, SteadyTime now) {
  trial_.reset();
  breaker_->note(failure, now);
}

std::optional<Failure> AgentBreaker::refusal(SteadyTime now) const {
  if (!shut_by_ || (now >= try_at_ && !is_tried_)) return std::nullopt;
  Failure refusal = *shut_by_;
  const auto left = std::chrono::ceil<std::chrono::seconds>(ends_at_ - now);
  refusal.retry_after = std::max<std::chrono::seconds>(left, kTrialWait);
  return refusal;
}

AgentBreaker::Pass AgentBreaker::let_through() {
  Pass pass(*this);
  if (shut_by_) {
    is_tried_ = true;
    pass.trial_.reset(this);
  }
  return pass;
}

void AgentBreaker::note(std::optional<Failure>& failure, SteadyTime now) {
  switch (failure ? verdict_of(scope_, failure->cause) : Verdict::works) {
    case Verdict::unknown:
      return;
    case Verdict::works:
      shut_by_.reset();
      return;
    case Verdict::refused:
      break;
  }
  if (!failure) return;
  if (failure->retry_after.count() == 0) failure->retry_after = wait_after(failure->cause);
  shut_by_ = failure;
  ends_at_ = now + failure->retry_after;
  try_at_ = now + std::min(failure->retry_after, kShutMax);
}

}  // namespace clawdforge
