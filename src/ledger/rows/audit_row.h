// A row of the table `session_events`, the audit of sessions, to and from the model. Other
// programs write it too.
#pragma once

#include <string>
#include <string_view>

#include "ledger/core/ledger_records.h"
#include "ledger/core/sql_driver.h"

namespace clawdforge {

// What audit_from() reads, in its order.
inline constexpr std::string_view kAuditColumns = "event_id, session_id, app_name, event, at, meta";

inline constexpr std::size_t kAuditColumnId = 0;
inline constexpr std::size_t kAuditColumnAt = 4;

AuditRecord audit_from(const SqlRow& row);

Result<void> add_audit(SqlDriver& driver, const std::string& session_id, const std::string& app,
                       const AuditEvent& event);

}  // namespace clawdforge
