#include "model/limits/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::array<std::string_view, 5> kWindowNames = {"hour", "day", "week", "month", "total"};
constexpr std::array<std::string_view, 4> kUnitNames = {"usd", "tokens", "asks", "agent_seconds"};
constexpr double kShownLimitMax = 1e9;  // dollars or seconds; tokens and asks may be more
constexpr std::int64_t kWholeLimitMax = 1'000'000'000'000;

constexpr std::string_view kShape =
    "must be a list of at most 8 objects with window (hour, day, week, month or total), unit (usd, "
    "tokens, asks or agent_seconds) and limit (a number from 0), each window and unit once";

std::string_view text_of(const json::value* value) {
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

std::optional<std::int64_t> limit_from(BudgetUnit unit, double shown) {
  if (!std::isfinite(shown) || shown < 0) return std::nullopt;
  const auto parts = parts_of(unit);
  if (parts > 1) {
    if (shown > kShownLimitMax) return std::nullopt;
    return std::llround(shown * static_cast<double>(parts));
  }
  if (shown > static_cast<double>(kWholeLimitMax) || shown != std::floor(shown))
    return std::nullopt;
  return static_cast<std::int64_t>(shown);
}

std::optional<Budget> budget_from(std::string_view window, std::string_view unit,
                                  std::optional<double> limit) {
  const auto in = budget_window_from(window);
  const auto of = budget_unit_from(unit);
  if (!in || !of || !limit) return std::nullopt;
  const auto most = limit_from(*of, *limit);
  if (!most) return std::nullopt;
  return Budget{*in, *of, *most};
}

bool add_budget(std::vector<Budget>& list, const std::optional<Budget>& budget) {
  if (!budget || list.size() >= kBudgetsMax) return false;
  const bool is_double = std::ranges::any_of(list, [&](const Budget& other) {
    return other.window == budget->window && other.unit == budget->unit;
  });
  if (is_double) return false;
  list.push_back(*budget);
  return true;
}

std::optional<double> number_of(const json::value* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<Budget> budget_in(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.rfind(':');
  if (first == std::string_view::npos || first == second) return std::nullopt;
  const std::string_view number = trimmed(text.substr(second + 1));
  double limit = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), limit);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return budget_from(trimmed(text.substr(0, first)),
                     trimmed(text.substr(first + 1, second - first - 1)), limit);
}

}  // namespace

std::string_view name_of(BudgetWindow window) { return name_among(kWindowNames, window); }
std::string_view name_of(BudgetUnit unit) { return name_among(kUnitNames, unit); }

std::optional<BudgetWindow> budget_window_from(std::string_view name) {
  return value_among<BudgetWindow>(kWindowNames, name);
}
std::optional<BudgetUnit> budget_unit_from(std::string_view name) {
  return value_among<BudgetUnit>(kUnitNames, name);
}

std::int64_t& Amounts::of(BudgetUnit unit) {
  switch (unit) {
    case BudgetUnit::usd:
      return nano_usd;
    case BudgetUnit::tokens:
      return tokens;
    case BudgetUnit::asks:
      return asks;
    case BudgetUnit::agent_seconds:
      return agent_ms;
  }
  return asks;
}

std::int64_t Amounts::of(BudgetUnit unit) const {
  Amounts copy = *this;
  return copy.of(unit);
}

std::int64_t parts_of(BudgetUnit unit) {
  if (unit == BudgetUnit::usd) return 1'000'000'000;
  return unit == BudgetUnit::agent_seconds ? 1'000 : 1;
}

json::value shown_amount(BudgetUnit unit, std::int64_t amount) {
  const std::int64_t parts = parts_of(unit);
  if (amount % parts == 0) return amount / parts;
  return static_cast<double>(amount) / static_cast<double>(parts);
}

WindowSpan window_at(BudgetWindow window, TimePoint at) {
  using std::chrono::days;
  using std::chrono::sys_days;
  const auto seconds = [](auto point) { return unix_seconds(TimePoint(point)); };
  const sys_days day = std::chrono::floor<days>(at);
  switch (window) {
    case BudgetWindow::hour: {
      const auto hour = std::chrono::floor<std::chrono::hours>(at);
      return {seconds(hour), seconds(hour + std::chrono::hours(1))};
    }
    case BudgetWindow::day:
      return {seconds(day), seconds(day + days(1))};
    case BudgetWindow::week: {
      const auto monday = day - (std::chrono::weekday(day) - std::chrono::Monday);
      return {seconds(monday), seconds(monday + days(7))};
    }
    case BudgetWindow::month: {
      const std::chrono::year_month_day date(day);
      const auto month = date.year() / date.month();
      return {seconds(sys_days(month / 1)),
              seconds(sys_days((month + std::chrono::months(1)) / 1))};
    }
    case BudgetWindow::total:
      break;
  }
  return {0, kNeverEnds};
}

std::expected<std::vector<Budget>, std::string> budgets_from(const json::value& list) {
  std::vector<Budget> budgets;
  const json::array* const items = list.if_array();
  if (items == nullptr) return std::unexpected(std::string(kShape));
  for (const json::value& item : *items) {
    const json::object* const object = item.if_object();
    if (object == nullptr || object->size() != 3 ||
        !add_budget(budgets, budget_from(text_of(object->if_contains("window")),
                                         text_of(object->if_contains("unit")),
                                         number_of(object->if_contains("limit"))))) {
      return std::unexpected(std::string(kShape));
    }
  }
  return budgets;
}

json::value shown(const std::vector<Budget>& budgets) {
  json::array list;
  for (const Budget& budget : budgets) {
    const std::string_view window = name_of(budget.window);
    const std::string_view unit = name_of(budget.unit);
    list.push_back({{"window", json::string_view(window.data(), window.size())},
                    {"unit", json::string_view(unit.data(), unit.size())},
                    {"limit", shown_amount(budget.unit, budget.limit)}});
  }
  return list;
}

std::expected<std::vector<Budget>, std::string> budgets_from_text(std::string_view text) {
  std::vector<Budget> budgets;
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!add_budget(budgets, budget_in(text.substr(0, comma)))) {
      return std::unexpected(
          "must be a list such as day:usd:5,total:asks:1000: a window (hour, day, week, month or "
          "total), a unit (usd, tokens, asks or agent_seconds) and a limit, at most 8, each window "
          "and unit once");
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return budgets;
}

std::string budgets_text(const std::vector<Budget>& budgets) {
  std::string text;
  for (const Budget& budget : budgets) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}:{}:{}", name_of(budget.window), name_of(budget.unit),
                        json::serialize(shown_amount(budget.unit, budget.limit)));
  }
  return text;
}

}  // namespace clawdforge
