#include "ledger/usage/usage_rows.h"

#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/usage/usage_count.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kHour = 3'600;
constexpr std::int64_t kNoStep = 1'000'000'000'000;  // all times fall into one

// One statement for all ways to tell rows apart: what is not asked for is the empty text.
std::string read_statement(std::string_view table) {
  return fmt::format(
      "SELECT at / CAST($3 AS BIGINT) AS step, CASE WHEN $4 = 1 THEN app_name ELSE '' END AS app, "
      "CASE WHEN $5 = 1 THEN agent ELSE '' END AS ag, CASE WHEN $6 = 1 THEN model ELSE '' END AS "
      "mo, CASE WHEN $7 = 1 THEN kind ELSE '' END AS ki, {} FROM {} "
      "WHERE at >= $1 AND at < $2",
      usage_columns("@"), table);
}

std::string both_tables(std::string_view more) {
  return fmt::format(
      "SELECT step, app, ag, mo, ki, {} FROM ({}{} UNION ALL {}{}) AS found "
      "GROUP BY step, app, ag, mo, ki ORDER BY step, app, ag, mo, ki LIMIT $8",
      usage_columns("SUM(@)"), read_statement("usage_minutes"), more, read_statement("usage_hours"),
      more);
}

std::int64_t flag(bool is_set) { return is_set ? 1 : 0; }

Result<std::vector<UsageRow>> read_all(SqlDriver& driver, const UsageQuery& query) {
  static const std::string kOfAll = both_tables("");
  static const std::string kOfOne = both_tables(" AND app_name = $9");
  const std::int64_t step = query.step > 0 ? query.step : kNoStep;
  SqlRow params = {query.from,
                   query.to,
                   step,
                   flag(query.by.app),
                   flag(query.by.agent),
                   flag(query.by.model),
                   flag(query.by.kind),
                   query.rows_max + 1};
  if (query.app) params.emplace_back(query.app->str());
  const auto found = driver.execute(query.app ? kOfOne : kOfAll, params);
  if (!found) return std::unexpected(found.error());
  if (static_cast<std::int64_t>(found->rows.size()) > query.rows_max) {
    return fail(Errc::too_large, "too_many_rows",
                "There are too many rows of usage; ask for a shorter time, or by less.");
  }
  std::vector<UsageRow> rows;
  rows.reserve(found->rows.size());
  for (const SqlRow& row : found->rows) {
    rows.push_back({.at = query.step > 0 ? whole_in(row.at(0)).value_or(0) * step : 0,
                    .app = id_in<AppName>(row.at(1)),
                    .agent = text_in(row.at(2)).value_or(""),
                    .model = text_in(row.at(3)).value_or(""),
                    .kind = text_in(row.at(4)).value_or(""),
                    .sums = sums_in(row, 5)});
  }
  return rows;
}

Result<std::optional<std::int64_t>> oldest(SqlDriver& driver, std::string_view statement,
                                           std::int64_t before) {
  const auto found = driver.execute(statement, {before});
  if (!found) return std::unexpected(found.error());
  return found->rows.empty() ? std::nullopt : whole_in(found->rows.front().at(0));
}

Result<bool> fold_oldest(SqlDriver& driver, std::int64_t until) {
  static const std::string kFold = fmt::format(
      "INSERT INTO usage_hours (at, app_name, agent, model, kind, {}) "
      "SELECT CAST($1 AS BIGINT), app_name, agent, model, kind, {} FROM usage_minutes "
      "WHERE at >= $1 AND at < $2 GROUP BY app_name, agent, model, kind "
      "ON CONFLICT (at, app_name, agent, model, kind) DO UPDATE SET {}",
      usage_columns("@"), usage_columns("SUM(@)"), usage_columns("@ = usage_hours.@ + excluded.@"));
  const auto at = oldest(driver, "SELECT MIN(at) FROM usage_minutes WHERE at < $1", until);
  if (!at) return std::unexpected(at.error());
  const std::optional<std::int64_t> minute = *at;
  if (!minute) return false;
  const std::int64_t hour = *minute / kHour * kHour;
  if (hour + kHour > until) return false;
  const auto folded = driver.execute(kFold, {hour, hour + kHour});
  if (!folded) return std::unexpected(folded.error());
  const auto removed =
      driver.execute("DELETE FROM usage_minutes WHERE at >= $1 AND at < $2", {hour, hour + kHour});
  if (!removed) return std::unexpected(removed.error());
  return true;
}

Result<bool> trim_oldest(SqlDriver& driver, std::int64_t first) {
  const auto at = oldest(driver, "SELECT MIN(at) FROM usage_hours WHERE at < $1", first);
  if (!at) return std::unexpected(at.error());
  const std::optional<std::int64_t> hour = *at;
  if (!hour) return false;
  const auto removed = driver.execute("DELETE FROM usage_hours WHERE at = $1", {*hour});
  if (!removed) return std::unexpected(removed.error());
  return true;
}

}  // namespace

Async<std::vector<UsageRow>> UsageRows::read(UsageQuery query) const {
  Lane lane = query.app ? Lane(*query.app) : Lane();
  return worker_.read<std::vector<UsageRow>>(
      std::move(lane),
      [query = std::move(query)](SqlDriver& driver) { return read_all(driver, query); });
}

Async<bool> UsageRows::fold(TimePoint until) {
  return worker_.call<bool>(
      Lane(), Access::write,
      [until = unix_seconds(until)](SqlDriver& driver) { return fold_oldest(driver, until); });
}

Async<bool> UsageRows::trim(TimePoint first) {
  return worker_.call<bool>(
      Lane(), Access::write,
      [first = unix_seconds(first)](SqlDriver& driver) { return trim_oldest(driver, first); });
}

}  // namespace clawdforge
