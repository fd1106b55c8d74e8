// What becomes of sessions that are closed for long, and of those that an earlier life has left.
#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/sessions/journal_parts.h"
#include "ledger/sessions/journal_rows.h"
#include "ledger/sessions/session_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kIsStillOpen =
    "SELECT 1 FROM sessions WHERE session_id = $1 AND closed_at IS NULL";
constexpr std::string_view kDeleteTurns = "DELETE FROM turns WHERE session_id = $1";
// Of a block that was never whole.
constexpr std::string_view kDeleteParts = "DELETE FROM journal_parts WHERE session_id = $1";
constexpr std::string_view kDeleteClosed =
    "DELETE FROM sessions WHERE session_id = $1 AND closed_at IS NOT NULL RETURNING app_name";
// A turn that was given meanwhile may have left events.
constexpr std::string_view kDropUnansweredJournal =
    "DELETE FROM {} WHERE session_id IN (SELECT session_id FROM sessions "
    "WHERE closed_at IS NULL AND agent_session_id IS NULL AND instance_id <> $1 AND {})";
constexpr std::string_view kDropUnanswered =
    "DELETE FROM sessions WHERE closed_at IS NULL AND agent_session_id IS NULL "
    "AND instance_id <> $1 AND {}";
constexpr std::string_view kAdoptOpen =
    "UPDATE sessions SET instance_id = $1, process_pid = NULL, process_start = NULL, "
    "process_boot_id = NULL WHERE closed_at IS NULL "
    "AND (instance_id IS NULL OR instance_id <> $1) AND {}";
constexpr std::string_view kForgetProcesses =
    "UPDATE sessions SET process_pid = NULL, process_start = NULL, process_boot_id = NULL "
    "WHERE closed_at IS NOT NULL AND process_pid IS NOT NULL "
    "AND (instance_id IS NULL OR instance_id <> $1) AND {}";
// Of closed sessions, too: another program may have closed one while its agent ran.
constexpr std::string_view kLeftOfSessions =
    "SELECT process_pid, process_start, process_boot_id FROM sessions "
    "WHERE (instance_id IS NULL OR instance_id <> $1) AND {} "
    "AND process_pid BETWEEN 0 AND 9223372036854775807 "
    "AND process_start BETWEEN 0 AND 9223372036854775807 AND process_boot_id IS NOT NULL "
    "ORDER BY created_at, session_id LIMIT $2";
// Of sessions that went without us.
constexpr std::string_view kDropLoneTurns =
    "DELETE FROM turns WHERE NOT EXISTS "
    "(SELECT 1 FROM sessions WHERE sessions.session_id = turns.session_id)";

Result<bool> delete_step(SqlDriver& driver, const SessionId& id, const AuditEvent& event,
                         std::int64_t blocks_max) {
  const auto open = driver.execute(kIsStillOpen, {id.str()});
  if (!open) return std::unexpected(open.error());
  if (!open->rows.empty()) return false;
  const auto blocks = remove_oldest_blocks(driver, id, blocks_max);
  if (!blocks) return std::unexpected(blocks.error());
  if (*blocks >= blocks_max) return false;
  const auto parts = remove_lone_parts(driver, id);
  if (!parts) return std::unexpected(parts.error());
  if (*parts >= kLonePartsMax) return false;
  const auto turns = driver.execute(kDeleteTurns, {id.str()});
  if (!turns) return std::unexpected(turns.error());
  const auto left = driver.execute(kDeleteParts, {id.str()});
  if (!left) return std::unexpected(left.error());
  const auto row = driver.execute(kDeleteClosed, {id.str()});
  if (!row) return std::unexpected(row.error());
  if (row->rows.empty()) return true;
  auto audited = add_audit(driver, id, id_in<AppName>(row->rows[0].at(0)), event);
  if (!audited) return std::unexpected(std::move(audited.error()));
  return true;
}

Result<std::int64_t> adopt_all(SqlDriver& driver, const InstanceId& instance_id) {
  static const std::string kEnded = owner_has_ended("sessions");
  static const std::string kEmpty = fmt::format(kDropUnansweredJournal, "journal", kEnded);
  static const std::string kEmptyParts =
      fmt::format(kDropUnansweredJournal, "journal_parts", kEnded);
  static const std::string kDrop = fmt::format(kDropUnanswered, kEnded);
  static const std::string kAdopt = fmt::format(kAdoptOpen, kEnded);
  static const std::string kForget = fmt::format(kForgetProcesses, kEnded);
  for (const std::string& statement : {kEmpty, kEmptyParts}) {
    const auto emptied = driver.execute(statement, {instance_id.str()});
    if (!emptied) return std::unexpected(emptied.error());
  }
  const auto dropped = driver.execute(kDrop, {instance_id.str()});
  if (!dropped) return std::unexpected(dropped.error());
  for (const std::string& statement : {kAdopt, kForget}) {
    const auto done = driver.execute(statement, {instance_id.str()});
    if (!done) return std::unexpected(done.error());
  }
  const auto tidied = driver.execute(kDropLoneTurns);
  if (!tidied) return std::unexpected(tidied.error());
  return dropped->changed;
}

}  // namespace

Async<bool> SessionRows::remove_closed(SessionId id, AuditEvent event, std::int64_t blocks_max) {
  return worker_.call<bool>(
      Lane(), Access::write,
      [id = std::move(id), event = std::move(event), blocks_max](SqlDriver& driver) {
        return delete_step(driver, id, event, blocks_max);
      });
}

Async<std::vector<ProcessMark>> SessionRows::left_processes(std::int64_t limit) const {
  return worker_.call<std::vector<ProcessMark>>(
      Lane(), Access::read, [self = self_, limit](SqlDriver& driver) {
        static const std::string kLeft = fmt::format(kLeftOfSessions, owner_has_ended("sessions"));
        return marks_in(driver.execute(kLeft, {self.str(), limit}));
      });
}

Async<std::int64_t> SessionRows::adopt_left() {
  return worker_.call<std::int64_t>(
      Lane(), Access::write, [self = self_](SqlDriver& driver) { return adopt_all(driver, self); });
}

}  // namespace clawdforge
