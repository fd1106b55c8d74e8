#include "ledger/usage/budget_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {
namespace {

constexpr std::string_view kFindWindow =
    "SELECT nano_usd, tokens, asks, agent_ms FROM budget_windows "
    "WHERE scope = $1 AND begins_at = $2 AND ends_at = $3";
constexpr std::string_view kAddWindow =
    "INSERT INTO budget_windows (scope, begins_at, ends_at, nano_usd, tokens, asks, agent_ms) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)";
constexpr std::string_view kUsedIn =
    "SELECT COALESCE(SUM(nano_usd), 0), COALESCE(SUM(input_tokens + output_tokens + "
    "cache_read_tokens + cache_write_tokens), 0), COALESCE(SUM(asks), 0), "
    "COALESCE(SUM(agent_ms), 0) FROM (SELECT * FROM usage_minutes WHERE {0} AND at >= $1 "
    "AND at < $2 UNION ALL SELECT * FROM usage_hours WHERE {0} AND at >= $1 AND at < $2) AS found";
constexpr std::string_view kReserved =
    "SELECT COALESCE(SUM(nano_usd), 0), COALESCE(SUM(tokens), 0), COALESCE(SUM(asks), 0), "
    "COALESCE(SUM(agent_ms), 0) FROM reservations WHERE {}";
constexpr std::string_view kReserve =
    "INSERT INTO reservations (ask_id, app_name, nano_usd, tokens, asks, agent_ms, at, "
    "instance_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (ask_id) DO NOTHING";
constexpr std::string_view kRelease = "DELETE FROM reservations WHERE ask_id = $1";
constexpr std::string_view kTrimWindows =
    "DELETE FROM budget_windows WHERE ends_at <= $1 OR (scope <> '' AND NOT EXISTS "
    "(SELECT 1 FROM tokens WHERE tokens.name = budget_windows.scope))";
constexpr std::string_view kRecentAsks =
    "SELECT cost_usd, COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0) + "
    "COALESCE(cache_read_tokens, 0) + COALESCE(cache_write_tokens, 0), agent_ms FROM ("
    "SELECT * FROM (SELECT ended_at, cost_usd, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, agent_ms FROM runs WHERE app_name = $1 AND agent = $2 "
    "AND COALESCE(model, '') = $3 AND agent_ms IS NOT NULL ORDER BY started_at DESC LIMIT $4) "
    "AS of_runs UNION ALL SELECT * FROM (SELECT turns.ended_at, turns.cost_usd, "
    "turns.input_tokens, turns.output_tokens, turns.cache_read_tokens, turns.cache_write_tokens, "
    "turns.agent_ms FROM turns JOIN sessions ON sessions.session_id = turns.session_id "
    "WHERE sessions.app_name = $1 AND sessions.agent = $2 AND COALESCE(sessions.model, '') = $3 "
    "AND turns.agent_ms IS NOT NULL ORDER BY turns.ended_at DESC LIMIT $4) AS of_turns) AS found "
    "ORDER BY ended_at DESC LIMIT $4";

Amounts amounts_in(const SqlRow& row) {
  return {.nano_usd = whole_in(row.at(0)).value_or(0),
          .tokens = whole_in(row.at(1)).value_or(0),
          .asks = whole_in(row.at(2)).value_or(0),
          .agent_ms = whole_in(row.at(3)).value_or(0)};
}

Result<Amounts> amounts_of(Result<SqlResult> found) {
  if (!found) return std::unexpected(std::move(found.error()));
  return found->rows.empty() ? Amounts{} : amounts_in(found->rows.front());
}

// One that no ask has needed before begins with what the usage says.
Result<Amounts> used_in(SqlDriver& driver, const std::string& scope, WindowSpan span) {
  static const std::string kOfApp = fmt::format(kUsedIn, "app_name = $3");
  static const std::string kOfAll = fmt::format(kUsedIn, "1 = 1");
  const auto window = driver.execute(kFindWindow, {scope, span.begins, span.ends});
  if (!window) return std::unexpected(window.error());
  if (!window->rows.empty()) return amounts_in(window->rows.front());
  const auto used =
      amounts_of(scope.empty() ? driver.execute(kOfAll, {span.begins, span.ends})
                               : driver.execute(kOfApp, {span.begins, span.ends, scope}));
  if (!used) return used;
  const auto added = driver.execute(kAddWindow, {scope, span.begins, span.ends, used->nano_usd,
                                                 used->tokens, used->asks, used->agent_ms});
  if (!added) return std::unexpected(added.error());
  return used;
}

struct Scope {
  std::string name;  // empty: all apps together
  const std::vector<Budget>& budgets;
  Amounts reserved;
};

Result<void> look_at(SqlDriver& driver, const ReservationRequest& request, const Scope& scope,
                     ReservationAnswer& answer) {
  for (const Budget& budget : scope.budgets) {
    const WindowSpan span = window_at(budget.window, request.now);
    const auto used = used_in(driver, scope.name, span);
    if (!used) return std::unexpected(used.error());
    const BudgetState state{.is_of_gateway = scope.name.empty(),
                            .budget = budget,
                            .used = used->of(budget.unit),
                            .reserved = scope.reserved.of(budget.unit),
                            .resets_at = span.ends};
    // An ask that needs more than the whole budget is let through where nothing is used: else it
    // would be refused for ever.
    const std::int64_t needed = std::clamp<std::int64_t>(request.estimate.of(budget.unit), 1,
                                                         std::max<std::int64_t>(budget.limit, 1));
    const bool fits = state.used + state.reserved + needed <= budget.limit;
    if (!fits && (!answer.refused || answer.refused->resets_at < state.resets_at)) {
      answer.refused = state;
    }
    answer.states.push_back(state);
  }
  return {};
}

Result<ReservationAnswer> reserve_all(SqlDriver& driver, const ReservationRequest& request,
                                      const InstanceId& self) {
  static const std::string kOfApp = fmt::format(kReserved, "app_name = $1");
  static const std::string kOfAll = fmt::format(kReserved, "1 = 1");
  if (auto locked = driver.lock("budgets"); !locked) return std::unexpected(locked.error());
  ReservationAnswer answer;
  const auto of_app = amounts_of(driver.execute(kOfApp, {request.app.str()}));
  if (!of_app) return std::unexpected(of_app.error());
  auto looked = look_at(driver, request, {request.app.str(), request.of_app, *of_app}, answer);
  if (!looked) return std::unexpected(looked.error());
  if (!request.of_gateway.empty()) {
    const auto of_all = amounts_of(driver.execute(kOfAll));
    if (!of_all) return std::unexpected(of_all.error());
    looked = look_at(driver, request, {"", request.of_gateway, *of_all}, answer);
    if (!looked) return std::unexpected(looked.error());
  }
  if (answer.refused) return answer;
  const Amounts& amounts = request.estimate;
  const auto reserved = driver.execute(
      kReserve, {request.id, request.app.str(), amounts.nano_usd, amounts.tokens, amounts.asks,
                 amounts.agent_ms, unix_seconds(request.now), self.str()});
  if (!reserved) return std::unexpected(reserved.error());
  return answer;
}

}  // namespace

Async<ReservationAnswer> BudgetRows::reserve(ReservationRequest request) {
  Lane lane(request.app);
  return worker_.call<ReservationAnswer>(
      std::move(lane), Access::write,
      [request = std::move(request), self = self_](SqlDriver& driver) {
        return reserve_all(driver, request, self);
      });
}

Result<void> release_in(SqlDriver& driver, const std::string& id) {
  return without_rows(driver.execute(kRelease, {id}));
}

Async<void> BudgetRows::release(std::string id, AppName app) {
  return worker_.call<void>(
      Lane(std::move(app)), Access::write,
      [id = std::move(id)](SqlDriver& driver) { return release_in(driver, id); });
}

Async<std::vector<Amounts>> BudgetRows::recent(AppName app, std::string agent,
                                               std::string model) const {
  Lane lane(app);
  return worker_.call<std::vector<Amounts>>(
      std::move(lane), Access::read,
      [app = std::move(app), agent = std::move(agent),
       model = std::move(model)](SqlDriver& driver) -> Result<std::vector<Amounts>> {
        const auto found = driver.execute(kRecentAsks, {app.str(), agent, model, kRecentAsksMax});
        if (!found) return std::unexpected(found.error());
        std::vector<Amounts> asks;
        for (const SqlRow& row : found->rows) {
          asks.push_back({.nano_usd = nano_usd_of(number_in(row.at(0))),
                          .tokens = whole_in(row.at(1)).value_or(0),
                          .asks = 1,
                          .agent_ms = whole_in(row.at(2)).value_or(0)});
        }
        return asks;
      });
}

Async<void> BudgetRows::trim(TimePoint until) {
  return worker_.call<void>(Lane(), Access::write,
                            [until = unix_seconds(until)](SqlDriver& driver) {
                              return without_rows(driver.execute(kTrimWindows, {until}));
                            });
}

}  // namespace clawdforge
