// A budget is how much of one thing an app, or all apps together, may use in a window of the
// calendar. Plain records and pure functions.
#pragma once

#include <array>
#include <boost/json/fwd.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace clawdforge {

enum class BudgetWindow { hour, day, week, month, total };
enum class BudgetUnit { usd, tokens, asks, agent_seconds };

inline constexpr std::array kBudgetUnits = {BudgetUnit::usd, BudgetUnit::tokens, BudgetUnit::asks,
                                            BudgetUnit::agent_seconds};
inline constexpr std::size_t kBudgetsMax = 8;  // of one app, and of the gateway

std::string_view name_of(BudgetWindow window);
std::string_view name_of(BudgetUnit unit);
std::optional<BudgetWindow> budget_window_from(std::string_view name);
std::optional<BudgetUnit> budget_unit_from(std::string_view name);

// An amount of each unit, in the smallest parts that are counted: billionths of a dollar, tokens,
// asks, milliseconds.
struct Amounts {
  std::int64_t nano_usd = 0;
  std::int64_t tokens = 0;
  std::int64_t asks = 0;
  std::int64_t agent_ms = 0;

  std::int64_t of(BudgetUnit unit) const;
  std::int64_t& of(BudgetUnit unit);
  bool operator==(const Amounts&) const = default;
};

struct Budget {
  BudgetWindow window = BudgetWindow::day;
  BudgetUnit unit = BudgetUnit::asks;
  std::int64_t limit = 0;  // in the smallest parts, as in Amounts

  bool operator==(const Budget&) const = default;
};

// How much one shown unit has of the smallest parts: a dollar, a second.
std::int64_t parts_of(BudgetUnit unit);
// An amount as callers read it: dollars and seconds with their fraction, the others whole.
boost::json::value shown_amount(BudgetUnit unit, std::int64_t amount);

// [begins, ends) in unix seconds; a total has no end. UTC; weeks begin on Monday.
struct WindowSpan {
  std::int64_t begins = 0;
  std::int64_t ends = 0;
  bool operator==(const WindowSpan&) const = default;
};
inline constexpr std::int64_t kNeverEnds = 253'402'300'800;  // the year 10000
WindowSpan window_at(BudgetWindow window, TimePoint at);

// {"window":"day","unit":"usd","limit":5}, and lists of them. The error is the end of a sentence
// ("must be ..."). Two of the same window and unit are one too many.
std::expected<std::vector<Budget>, std::string> budgets_from(const boost::json::value& list);
boost::json::value shown(const std::vector<Budget>& budgets);

// "day:usd:5, total:asks:1000": the same in one line, for a variable of the environment.
std::expected<std::vector<Budget>, std::string> budgets_from_text(std::string_view text);
std::string budgets_text(const std::vector<Budget>& budgets);

}  // namespace clawdforge
