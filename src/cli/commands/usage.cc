// `clawdforge usage`: what asks have used, as a table; on a terminal with bars. With an app's token
// the app's own, else that of all apps.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/core/ask.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::size_t kBarColumnsMax = 20;

// "7d", "12h", "30m", "90s" or plain seconds; none: it is not such a time.
std::optional<std::int64_t> seconds_in(std::string_view text) {
  std::int64_t number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 9;
       ++digits) {
    number = number * 10 + (text[digits] - '0');
  }
  const std::string_view unit = text.substr(digits);
  if (digits == 0) return std::nullopt;
  if (unit == "d") return number * 86'400;
  if (unit == "h") return number * 3'600;
  if (unit == "m") return number * 60;
  if (unit == "s" || unit.empty()) return number;
  return std::nullopt;
}

double number_in(const json::object& row, std::string_view name) {
  const json::value* const value = row.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::string bar_of(double part) {
  const auto full = static_cast<std::size_t>(part * static_cast<double>(kBarColumnsMax) + 0.5);
  std::string bar;
  for (std::size_t column = 0; column < std::min(full, kBarColumnsMax); ++column) bar += "█";
  return bar;
}

std::vector<std::string> cells_of(const json::object& row, const std::vector<std::string>& by) {
  std::vector<std::string> cells;
  for (const std::string& name : by) cells.push_back(field_of(row, name));
  const double tokens = number_in(row, "cache_read_tokens") + number_in(row, "cache_write_tokens");
  cells.push_back(field_of(row, "asks"));
  cells.push_back(field_of(row, "failed"));
  cells.push_back(field_of(row, "input_tokens"));
  cells.push_back(field_of(row, "output_tokens"));
  cells.push_back(fmt::format("{:.0f}", tokens));
  cells.push_back(fmt::format("{:.4f}", number_in(row, "cost_usd")));
  cells.push_back(fmt::format("{:.1f}", number_in(row, "agent_ms") / 1'000));
  return cells;
}

// A bar is a row's part of the largest cost, or of the most asks where nothing has a cost.
Done print_usage(const Invocation& invocation, const json::object& body) {
  const json::array* const rows = list_of(body, "rows");
  const json::array* const names = list_of(body, "by");
  if (rows == nullptr || names == nullptr) {
    return complain(kExitFailed, "the answer has no rows in it; is it a clawdforge gateway?");
  }
  std::vector<std::string> by;
  std::vector<std::string> headings;
  for (const json::value& name : *names) {
    by.push_back(text_of(name));
    std::string heading = by.back();
    std::ranges::transform(heading, heading.begin(),
                           [](unsigned char c) { return std::toupper(c); });
    headings.push_back(std::move(heading));
  }
  for (const char* heading : {"ASKS", "FAILED", "INPUT", "OUTPUT", "CACHE", "USD", "SECONDS"}) {
    headings.emplace_back(heading);
  }
  const bool has_bars = invocation.screen.is_terminal && !by.empty();
  if (has_bars) headings.emplace_back("");
  double most_cost = 0;
  double most_asks = 0;
  for (const json::value& row : *rows) {
    if (!row.is_object()) continue;
    most_cost = std::max(most_cost, number_in(row.get_object(), "cost_usd"));
    most_asks = std::max(most_asks, number_in(row.get_object(), "asks"));
  }
  Table table(std::move(headings));
  for (const json::value& value : *rows) {
    if (!value.is_object()) continue;
    const json::object& row = value.get_object();
    std::vector<std::string> cells = cells_of(row, by);
    if (has_bars) {
      cells.push_back(bar_of(most_cost > 0   ? number_in(row, "cost_usd") / most_cost
                             : most_asks > 0 ? number_in(row, "asks") / most_asks
                                             : 0));
    }
    table.add(std::move(cells));
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done usage(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const auto since = seconds_in(arguments.has("--since") ? arguments.text("--since") : "30d");
  if (!since) {
    return complain(kExitUsage, "--since must be a time such as 7d, 12h or 30m.");
  }
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const std::string by = arguments.has("--by") ? arguments.text("--by") : "agent,model";
  std::string query =
      fmt::format("?from={}&by={}", std::max<std::int64_t>(now - *since, 0), path_part(by));
  if (arguments.has("--app")) query += "&app=" + path_part(arguments.text("--app"));
  const bool is_of_all = arguments.has("--all") || arguments.has("--app");
  const auto answer = is_of_all ? ask(invocation, TokenKind::admin, "GET", "/admin/usage" + query)
                                : ask(invocation, TokenKind::app, "GET", "/usage" + query);
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  return print_usage(invocation, answer->body);
}

}  // namespace

std::vector<Command> usage_commands() {
  return {
      {.name = "usage",
       .group = "Administration",
       .summary = "what runs and turns have used",
       .run = usage,
       .options = {{.name = "--by",
                    .value = "LIST",
                    .help = "what rows are told apart by, any of app,agent,model,kind,day,hour "
                            "(default: agent,model)"},
                   {.name = "--since",
                    .value = "TIME",
                    .help = "how far back: 7d, 12h, 30m (default: 30d)"},
                   {.name = "--all", .help = "of all apps, with the admin token"},
                   {.name = "--app",
                    .value = "NAME",
                    .help = "of this app, with the admin token",
                    .offers = Offers::tokens}},
       .examples = {"clawdforge usage --by day --since 7d",
                    "clawdforge usage --all --by app,model --json | jq '.totals.cost_usd'"}},
  };
}

}  // namespace clawdforge
