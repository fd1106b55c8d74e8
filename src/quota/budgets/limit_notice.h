// What a caller is told of its limits: the headers RateLimit-Policy and RateLimit of the draft
// of the IETF, and the member `limit` of a refusal. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/limits/reservation.h"

namespace clawdforge {

// The values of the two headers; empty: there is nothing to tell.
struct LimitNotice {
  std::string policy;
  std::string left;
};

struct RateState {
  std::int64_t per_minute = 0;
  std::int64_t left = 0;
  std::chrono::seconds wait{};  // until one more may come
};

// One entry for each limit. The ask itself counts as reserved.
LimitNotice notice_of(const std::vector<BudgetState>& budgets, const Amounts& own,
                      const std::optional<RateState>& rate, TimePoint now);

// Tells it with a refusal.
void tell(Failure& refusal, LimitNotice notice);

// Errc::over_quota "budget_exhausted", with its limit.
Failure budget_refusal(const BudgetState& state, TimePoint now);
// Errc::over_quota "rate_limited", with its limit.
Failure rate_refusal(const RateState& rate, TimePoint now);

}  // namespace clawdforge
