#include "quota/budgets/estimates.h"

#include <algorithm>

namespace clawdforge {

void Estimates::learn(const Key& key, const std::vector<Amounts>& asks) {
  if (asks_.size() >= kEstimatedKeysMax && !knows(key)) asks_.clear();
  std::deque<Amounts>& known = asks_[key];
  known.assign(asks.begin(), asks.begin() + static_cast<std::ptrdiff_t>(
                                                std::min(asks.size(), kEstimatedAsksMax)));
}

void Estimates::note(const Key& key, const Amounts& used) {
  const auto known = asks_.find(key);
  if (known == asks_.end()) return;
  known->second.push_front(used);
  if (known->second.size() > kEstimatedAsksMax) known->second.pop_back();
}

Amounts Estimates::of(const Key& key) const {
  Amounts estimate = floor_;
  estimate.asks = 1;
  const auto known = asks_.find(key);
  if (known == asks_.end() || known->second.empty()) return estimate;
  for (const BudgetUnit unit : {BudgetUnit::usd, BudgetUnit::tokens, BudgetUnit::agent_seconds}) {
    std::vector<std::int64_t> amounts;
    for (const Amounts& ask : known->second) amounts.push_back(ask.of(unit));
    // The smallest that at least nine of ten did not exceed.
    const std::size_t place = (amounts.size() * 9 + 9) / 10 - 1;
    std::ranges::nth_element(amounts, amounts.begin() + static_cast<std::ptrdiff_t>(place));
    estimate.of(unit) = std::max(floor_.of(unit), amounts[place]);
  }
  return estimate;
}

}  // namespace clawdforge
