#include "upkeep/usage_sweep.h"

#include "ledger/usage/budget_rows.h"
#include "ledger/usage/usage_rows.h"

namespace clawdforge {
namespace {

constexpr std::chrono::hours kUsageMinutesAge{48};
constexpr std::chrono::hours kUsageHoursAge{400 * 24};
constexpr std::chrono::hours kBudgetWindowsAge{1};
constexpr int kUsageHoursMax = 200;  // folded or removed in one tick, each in a transaction

}  // namespace

Async<void> sweep_usage(UsageRows* rows, BudgetRows* budgets, const Clock* clock) {
  for (int hour = 0; hour < kUsageHoursMax; ++hour) {
    const auto folded = co_await rows->fold(clock->now() - kUsageMinutesAge);
    if (!folded) co_return std::unexpected(folded.error());
    if (!*folded) break;
  }
  for (int hour = 0; hour < kUsageHoursMax; ++hour) {
    const auto trimmed = co_await rows->trim(clock->now() - kUsageHoursAge);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    if (!*trimmed) break;
  }
  co_return co_await budgets->trim(clock->now() - kBudgetWindowsAge);
}

}  // namespace clawdforge
