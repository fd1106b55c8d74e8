#include "ledger/rows/audit_rows.h"

#include <fmt/format.h>

#include <charconv>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/page_cursor.h"

namespace clawdforge {
namespace {

constexpr std::string_view kAddAudit =
    "INSERT INTO session_events (session_id, app_name, event, at, meta) "
    "VALUES ($1, $2, $3, $4, $5)";
constexpr std::string_view kTrimAudit =
    "DELETE FROM session_events WHERE event_id IN (SELECT event_id FROM session_events "
    "WHERE at <= $1 ORDER BY at, event_id LIMIT $2)";

// What audit_from() reads, in its order.
constexpr std::string_view kAuditColumns = "event_id, session_id, app_name, event, at, meta";
enum AuditColumn : std::size_t {
  kAuditEventId,
  kAuditSessionId,
  kAuditAppName,
  kAuditEvent,
  kAuditAt,
  kAuditMeta
};

// Other programs write these rows too.
AuditRecord audit_from(const SqlRow& row) {
  AuditRecord record;
  record.session_id = id_in<SessionId>(row.at(kAuditSessionId));
  record.app = id_in<AppName>(row.at(kAuditAppName));
  record.event.event = text_in(row.at(kAuditEvent)).value_or("");
  record.event.at = time_in(row.at(kAuditAt)).value_or(TimePoint());
  record.event.meta = json_object_in(row.at(kAuditMeta)).value_or("{}");
  return record;
}

// Ids of the audit are numbers. No row has the smallest of all, so nothing sorts before it.
Result<std::int64_t> event_id_of(const PageCursor& place) {
  auto id = std::numeric_limits<std::int64_t>::min();
  if (place.id.empty()) return id;
  const char* const end = place.id.data() + place.id.size();
  const auto [number_end, error] = std::from_chars(place.id.data(), end, id);
  if (error != std::errc() || number_end != end) return foreign_cursor();
  return id;
}

Result<AuditPage> audit_page(SqlDriver& driver, const AuditFilter& filter, const PageCursor& place,
                             std::int64_t event_id) {
  constexpr std::string_view kPage =
      "SELECT {} FROM session_events WHERE {}at >= $1 AND at <= $2 "
      "AND (at < $2 OR event_id < $3) ORDER BY at DESC, event_id DESC LIMIT $4";
  SqlRow params = page_params(filter, place);
  params[2] = event_id;
  std::string conditions;
  const auto ask_for = [&](std::string_view column, std::string value) {
    params.emplace_back(std::move(value));
    conditions += fmt::format("{} = ${} AND ", column, params.size());
  };
  if (filter.app) ask_for("app_name", filter.app->str());
  if (filter.event) ask_for("event", *filter.event);
  if (filter.session_id) ask_for("session_id", filter.session_id->str());
  auto result = driver.execute(fmt::format(kPage, kAuditColumns, conditions), params);
  if (!result) return std::unexpected(std::move(result.error()));
  AuditPage page;
  page.next_cursor = cut_page(result->rows, filter.limit, kAuditAt, kAuditEventId);
  page.events.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) page.events.push_back(audit_from(row));
  return page;
}

}  // namespace

Async<AuditPage> AuditRows::page(AuditFilter filter) const {
  auto place = place_of(filter);
  if (!place) co_return std::unexpected(std::move(place.error()));
  auto event_id = event_id_of(*place);
  if (!event_id) co_return std::unexpected(std::move(event_id.error()));
  co_return co_await worker_.read<AuditPage>(
      Lane(), [filter = std::move(filter), place = std::move(*place), id = *event_id](
                  SqlDriver& driver) { return audit_page(driver, filter, place, id); });
}

Async<void> AuditRows::add(AppName app, AuditEvent event) {
  const Lane lane(app);
  return worker_.call<void>(lane, Access::write,
                            [app = std::move(app), event = std::move(event)](SqlDriver& driver) {
                              return add_audit(driver, SessionId(), app, event);
                            });
}

Async<void> AuditRows::add(AuditEvent event) {
  return worker_.call<void>(Lane(), Access::write, [event = std::move(event)](SqlDriver& driver) {
    return add_audit(driver, SessionId(), AppName(), event);
  });
}

Async<std::int64_t> AuditRows::trim(TimePoint last, std::int64_t rows_max) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [last, rows_max](SqlDriver& driver) {
    return changed_by(driver.execute(kTrimAudit, {unix_seconds(last), rows_max}));
  });
}

Result<void> add_audit(SqlDriver& driver, const SessionId& session_id, const AppName& app,
                       const AuditEvent& event) {
  return without_rows(driver.execute(
      kAddAudit, {session_id.str(), app.str(), event.event, unix_seconds(event.at), event.meta}));
}

}  // namespace clawdforge
