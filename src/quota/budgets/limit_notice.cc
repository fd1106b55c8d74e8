#include "quota/budgets/limit_notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

namespace clawdforge {
namespace {

// Structured headers have whole numbers only: money is told in millionths of a dollar.
std::int64_t header_amount(BudgetUnit unit, std::int64_t amount) {
  return unit == BudgetUnit::usd || unit == BudgetUnit::agent_seconds ? amount / 1'000 : amount;
}

std::string_view header_unit(BudgetUnit unit) {
  return unit == BudgetUnit::usd ? "microusd" : name_of(unit);
}

void append_entry(std::string& list, std::string_view entry) {
  if (!list.empty()) list += ", ";
  list += entry;
}

std::string shown(BudgetUnit unit, std::int64_t amount) {
  return boost::json::serialize(shown_amount(unit, amount));
}

std::string sentence_of(const BudgetState& state) {
  const Budget& budget = state.budget;
  const double limit =
      static_cast<double>(budget.limit) / static_cast<double>(parts_of(budget.unit));
  const std::string_view whose = state.is_of_gateway ? "All apps together have" : "This app has";
  const std::string_view unit = budget.unit == BudgetUnit::agent_seconds ? "seconds of agents"
                                : budget.unit == BudgetUnit::usd         ? "USD"
                                                                         : name_of(budget.unit);
  if (budget.window == BudgetWindow::total) {
    return fmt::format("{} used up the budget of {} {} in total; its owner can raise it.", whose,
                       limit, unit);
  }
  return fmt::format("{} used up the budget of {} {} for this {}; try again when the next begins.",
                     whose, limit, unit, name_of(budget.window));
}

}  // namespace

LimitNotice notice_of(const std::vector<BudgetState>& budgets, const Amounts& own,
                      const std::optional<RateState>& rate, TimePoint now) {
  LimitNotice notice;
  for (const BudgetState& state : budgets) {
    const BudgetUnit unit = state.budget.unit;
    const std::string name = fmt::format("\"{}{}-{}\"", state.is_of_gateway ? "gateway-" : "",
                                         name_of(state.budget.window), name_of(unit));
    const WindowSpan span = window_at(state.budget.window, now);
    const bool ends = state.budget.window != BudgetWindow::total;
    append_entry(
        notice.policy,
        fmt::format("{};q={};qu=\"{}\"{}", name, header_amount(unit, state.budget.limit),
                    header_unit(unit), ends ? fmt::format(";w={}", span.ends - span.begins) : ""));
    const std::int64_t left =
        std::max<std::int64_t>(state.budget.limit - state.used - state.reserved - own.of(unit), 0);
    append_entry(
        notice.left,
        fmt::format("{};r={}{}", name, header_amount(unit, left),
                    ends ? fmt::format(";t={}", state.resets_at - unix_seconds(now)) : ""));
  }
  if (rate) {
    append_entry(notice.policy,
                 fmt::format("\"minute-asks\";q={};qu=\"asks\";w=60", rate->per_minute));
    append_entry(notice.left,
                 fmt::format("\"minute-asks\";r={};t={}", rate->left, rate->wait.count()));
  }
  return notice;
}

void tell(Failure& refusal, LimitNotice notice) {
  refusal.rate_limit_policy = std::move(notice.policy);
  refusal.rate_limit = std::move(notice.left);
}

Failure budget_refusal(const BudgetState& state, TimePoint now) {
  const BudgetUnit unit = state.budget.unit;
  Failure refusal{.kind = Errc::over_quota,
                  .code = "budget_exhausted",
                  .message = sentence_of(state),
                  .cause = state.is_of_gateway ? Cause::other : Cause::app_limit};
  const bool ends = state.budget.window != BudgetWindow::total;
  if (ends) {
    refusal.retry_after =
        std::chrono::seconds(std::max<std::int64_t>(state.resets_at - unix_seconds(now), 1));
  }
  refusal.limit = fmt::format(
      R"({{"scope":"{}","window":"{}","unit":"{}","limit":{},"used":{},"reserved":{},"resets_at":{}}})",
      state.is_of_gateway ? "gateway" : "app", name_of(state.budget.window), name_of(unit),
      shown(unit, state.budget.limit), shown(unit, state.used), shown(unit, state.reserved),
      ends ? std::to_string(state.resets_at) : "null");
  return refusal;
}

Failure rate_refusal(const RateState& rate, TimePoint now) {
  Failure refusal{.kind = Errc::over_quota,
                  .code = "rate_limited",
                  .message = fmt::format("This app may ask {} times a minute; ask more slowly.",
                                         rate.per_minute),
                  .retry_after = rate.wait,
                  .cause = Cause::app_limit};
  refusal.limit = fmt::format(
      R"({{"scope":"app","window":"minute","unit":"asks","limit":{0},"used":{0},"reserved":0,"resets_at":{1}}})",
      rate.per_minute, unix_seconds(now) + rate.wait.count());
  return refusal;
}

}  // namespace clawdforge
