// The lists of sessions.
#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/page_cursor.h"
#include "ledger/sessions/session_row.h"
#include "ledger/sessions/session_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kCountOpenSessions =
    "SELECT COUNT(*) FROM sessions WHERE closed_at IS NULL";
constexpr std::string_view kIsOpenSession =
    "SELECT 1 FROM sessions WHERE session_id = $1 AND closed_at IS NULL";
constexpr std::string_view kClosedSessions =
    "SELECT session_id FROM sessions WHERE closed_at <= $1 ORDER BY closed_at LIMIT $2";
constexpr std::string_view kAllSessionIds = "SELECT session_id FROM sessions";

// All rows are read: few gateways have more than some thousand sessions in their retention.
constexpr std::string_view kBytesByApp =
    "SELECT app_name, CAST(SUM(journal_bytes + turn_count * CAST($2 AS BIGINT) + "
    "CAST($1 AS BIGINT) + COALESCE(LENGTH(system), 0) + COALESCE(LENGTH(meta), 0) + "
    "COALESCE(LENGTH(mcp_servers), 0)) AS BIGINT) FROM sessions GROUP BY app_name";

constexpr std::string_view kPageOfAll =
    "SELECT {} FROM sessions WHERE {}created_at >= $1 AND created_at <= $2 "
    "AND (created_at < $2 OR session_id < $3) "
    "ORDER BY created_at DESC, session_id DESC LIMIT $4";
// The open ones are few and have an index of their own. The plus keeps SQLite from walking
// through all that were ever closed, in the order of the index on the time.
constexpr std::string_view kPageOfOpen =
    "SELECT {} FROM sessions WHERE {}closed_at IS NULL "
    "AND +created_at >= $1 AND +created_at <= $2 AND (+created_at < $2 OR session_id < $3) "
    "ORDER BY +created_at DESC, session_id DESC LIMIT $4";
constexpr std::string_view kOfApp = "app_name = $5 AND ";

Result<SqlResult> select_sessions(SqlDriver& driver, const SessionFilter& filter,
                                  const PageCursor& place) {
  static const std::string kAll =
      fmt::format(fmt::runtime(kPageOfAll), session_short_columns(), "");
  static const std::string kAllOfApp =
      fmt::format(fmt::runtime(kPageOfAll), session_short_columns(), kOfApp);
  static const std::string kOpen =
      fmt::format(fmt::runtime(kPageOfOpen), session_short_columns(), "");
  static const std::string kOpenOfApp =
      fmt::format(fmt::runtime(kPageOfOpen), session_short_columns(), kOfApp);
  SqlRow params = page_params(filter.audit, place);
  if (!filter.audit.app) return driver.execute(filter.includes_closed ? kAll : kOpen, params);
  params.emplace_back(filter.audit.app->str());
  return driver.execute(filter.includes_closed ? kAllOfApp : kOpenOfApp, params);
}

Result<SessionPage> session_page(SqlDriver& driver, const SessionFilter& filter,
                                 const PageCursor& place) {
  auto result = select_sessions(driver, filter, place);
  if (!result) return std::unexpected(std::move(result.error()));
  SessionPage page;
  page.next_cursor =
      cut_page(result->rows, filter.audit.limit, kSessionColumnCreatedAt, kSessionColumnId);
  page.sessions.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) page.sessions.push_back(session_from(row));
  return page;
}

Result<std::vector<Session>> select_idle(SqlDriver& driver, std::int64_t last, std::int64_t limit) {
  static const std::string kIdle = fmt::format(
      "SELECT {} FROM sessions "
      "WHERE closed_at IS NULL AND COALESCE(last_turn_at, created_at) <= $1 "
      "ORDER BY COALESCE(last_turn_at, created_at), session_id LIMIT $2",
      session_short_columns());
  auto result = driver.execute(kIdle, {last, limit});
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<Session> sessions;
  sessions.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) sessions.push_back(session_from(row));
  return sessions;
}

Result<std::vector<SessionId>> ids_of(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<SessionId> ids;
  ids.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) {
    if (auto id = text_in(row.at(0))) ids.emplace_back(std::move(*id));
  }
  return ids;
}

Result<std::vector<SessionId>> select_open(SqlDriver& driver, const std::vector<SessionId>& ids) {
  std::vector<SessionId> open;
  for (const SessionId& id : ids) {
    const auto found = driver.execute(kIsOpenSession, {id.str()});
    if (!found) return std::unexpected(found.error());
    if (!found->rows.empty()) open.push_back(id);
  }
  return open;
}

}  // namespace

Async<SessionPage> SessionRows::page(SessionFilter filter, Lane lane) const {
  auto place = place_of(filter.audit);
  if (!place) co_return std::unexpected(std::move(place.error()));
  co_return co_await worker_.read<SessionPage>(
      std::move(lane), [filter = std::move(filter), place = std::move(*place)](SqlDriver& driver) {
        return session_page(driver, filter, place);
      });
}

Async<std::int64_t> SessionRows::count_open() const {
  return worker_.call<std::int64_t>(Lane(), Access::read,
                                    [](SqlDriver& driver) -> Result<std::int64_t> {
                                      const auto result = driver.execute(kCountOpenSessions);
                                      if (!result) return std::unexpected(result.error());
                                      return whole_in(result->rows.at(0).at(0)).value_or(0);
                                    });
}

Async<std::vector<SessionId>> SessionRows::open_among(std::vector<SessionId> ids) const {
  return worker_.call<std::vector<SessionId>>(
      Lane(), Access::read,
      [ids = std::move(ids)](SqlDriver& driver) { return select_open(driver, ids); });
}

Async<std::vector<Session>> SessionRows::idle(TimePoint last, std::int64_t limit) const {
  return worker_.call<std::vector<Session>>(Lane(), Access::read, [last, limit](SqlDriver& driver) {
    return select_idle(driver, unix_seconds(last), limit);
  });
}

Async<std::vector<SessionId>> SessionRows::closed(TimePoint last, std::int64_t limit) const {
  return worker_.call<std::vector<SessionId>>(
      Lane(), Access::read, [last, limit](SqlDriver& driver) {
        return ids_of(driver.execute(kClosedSessions, {unix_seconds(last), limit}));
      });
}

Async<std::vector<SessionId>> SessionRows::all_ids() const {
  return worker_.call<std::vector<SessionId>>(Lane(), Access::read, [](SqlDriver& driver) {
    return ids_of(driver.execute(kAllSessionIds));
  });
}

Async<std::map<AppName, std::int64_t>> SessionRows::bytes_by_app(
    std::int64_t bytes_each, std::int64_t bytes_each_turn) const {
  return worker_.read<BytesByApp>(Lane(), [bytes_each, bytes_each_turn](SqlDriver& driver) {
    return bytes_by_app_in(driver.execute(kBytesByApp, {bytes_each, bytes_each_turn}));
  });
}

}  // namespace clawdforge
