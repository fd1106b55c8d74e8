// What an ask reserves of its budgets before it starts, and how far they are used up then. Plain
// records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "model/limits/budget.h"

namespace clawdforge {

// One budget at the moment at which an ask was let through, or was not.
struct BudgetState {
  bool is_of_gateway = false;  // of all apps together
  Budget budget{};
  std::int64_t used = 0;       // in the window
  std::int64_t reserved = 0;   // by asks under way, without this one
  std::int64_t resets_at = 0;  // unix seconds; kNeverEnds for a total
};

struct ReservationRequest {
  std::string id;
  AppName app;
  TimePoint now;
  Amounts estimate;  // of what the ask will use
  std::vector<Budget> of_app;
  std::vector<Budget> of_gateway;
};

struct ReservationAnswer {
  std::vector<BudgetState> states;  // of all budgets
  // The budget that does not allow the ask, of several the one that is the last to begin again.
  // None: it is reserved.
  std::optional<BudgetState> refused;
};

}  // namespace clawdforge
