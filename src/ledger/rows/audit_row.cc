#include "ledger/rows/audit_row.h"

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::string_view kAddAudit =
    "INSERT INTO session_events (session_id, app_name, event, at, meta) "
    "VALUES ($1, $2, $3, $4, $5)";

enum Column : std::size_t { kEventId, kSessionId, kAppName, kEvent, kAt, kMeta };
static_assert(kEventId == kAuditColumnId && kAt == kAuditColumnAt);

}  // namespace

AuditRecord audit_from(const SqlRow& row) {
  AuditRecord record;
  record.session_id = text_in(row.at(kSessionId)).value_or("");
  record.app = text_in(row.at(kAppName)).value_or("");
  record.event.event = text_in(row.at(kEvent)).value_or("");
  record.event.at = time_in(row.at(kAt)).value_or(TimePoint());
  record.event.meta = json_object_in(row.at(kMeta)).value_or("{}");
  return record;
}

Result<void> add_audit(SqlDriver& driver, const std::string& session_id, const std::string& app,
                       const AuditEvent& event) {
  return without_rows(driver.execute(
      kAddAudit, {session_id, app, event.event, unix_seconds(event.at), event.meta}));
}

}  // namespace clawdforge
