#include "quota/agent_breaker.h"

#include <algorithm>

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kLoginWait{30};
constexpr std::chrono::seconds kLimitWait{60};  // where the agent did not say how long
// A time that an agent names may be misread; once in a while somebody has to look.
constexpr std::chrono::seconds kClosedMax = std::chrono::hours(1);
constexpr std::chrono::seconds kTrialWait{2};

bool closes(const Failure& failure) {
  return failure.code == "agent_not_logged_in" || failure.code == "account_limit";
}

// A program that ended without a result has not come to the question.
bool shows_nothing(const Failure& failure) {
  return failure.code.starts_with("agent_") && failure.code != "agent_error" && !closes(failure);
}

}  // namespace

std::optional<Failure> AgentBreaker::refusal(SteadyTime now) const {
  if (!closed_for_ || (now >= until_ && !is_tried_)) return std::nullopt;
  Failure refusal = *closed_for_;
  const auto left = std::chrono::ceil<std::chrono::seconds>(ends_at_ - now);
  refusal.retry_after = std::max<std::chrono::seconds>(left, kTrialWait);
  return refusal;
}

void AgentBreaker::note(std::optional<Failure>& failure, SteadyTime now, bool was_trial) {
  if (was_trial) is_tried_ = false;
  if (failure && shows_nothing(*failure)) return;
  if (!failure || !closes(*failure)) {
    closed_for_.reset();
    return;
  }
  if (failure->retry_after.count() == 0) {
    failure->retry_after = failure->code == "account_limit" ? kLimitWait : kLoginWait;
  }
  closed_for_ = failure;
  ends_at_ = now + failure->retry_after;
  until_ = now + std::min(failure->retry_after, kClosedMax);
}

}  // namespace clawdforge
