// The audit: one row for each thing of note that happened to a session. Its rows outlive the
// session's own. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/async/async.h"
#include "ledger/core/ledger_records.h"

namespace clawdforge {

class LedgerWorker;
class SqlDriver;

class AuditRows {
 public:
  explicit AuditRows(LedgerWorker& worker) : worker_(worker) {}

  // Errc::invalid "validation_failed" for a cursor that no page has given.
  Async<AuditPage> page(AuditFilter filter) const;

  // Something that happened to an app and belongs to none of its sessions.
  Async<void> add(AppName app, AuditEvent event);

  // What belongs to no session and no app.
  Async<void> add(AuditEvent event);

  // Removes rows from at or before `last`, the oldest first and at most `rows_max`; gives how
  // many.
  Async<std::int64_t> trim(TimePoint last, std::int64_t rows_max);

 private:
  LedgerWorker& worker_;
};

// For the rows of other nouns: a row of the audit in the transaction of what it tells of.
Result<void> add_audit(SqlDriver& driver, const SessionId& session_id, const AppName& app,
                       const AuditEvent& event);

}  // namespace clawdforge
