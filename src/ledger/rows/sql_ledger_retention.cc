// What goes, and when: the journals of sessions and the audit, step by step, so that no call
// holds the ledger for long, and what an earlier life has left.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ledger/core/row_values.h"
#include "ledger/rows/audit_row.h"
#include "ledger/rows/sql_ledger.h"

namespace clawdforge {
namespace {

constexpr std::string_view kIsOpen =
    "SELECT 1 FROM sessions WHERE session_id = $1 AND closed_at IS NULL";
constexpr std::string_view kDeleteOldest =
    "DELETE FROM journal WHERE session_id = $1 AND first_event_id IN (SELECT first_event_id "
    "FROM journal WHERE session_id = $1 ORDER BY first_event_id LIMIT $2) RETURNING bytes";
constexpr std::string_view kDeleteTurns = "DELETE FROM turns WHERE session_id = $1";
constexpr std::string_view kDeleteClosed =
    "DELETE FROM sessions WHERE session_id = $1 AND closed_at IS NOT NULL RETURNING app_name";
// A journal loses its oldest blocks and no other, so that what is left of it has no hole. A
// clock that was set back stamps late blocks with early times: those wait for the ones before
// them, and a session whose first block is young is not looked at.
constexpr std::string_view kOldBlocks =
    "SELECT session_id FROM journal WHERE at <= $1 AND "
    "(SELECT head.at FROM journal AS head WHERE head.session_id = journal.session_id "
    "ORDER BY head.first_event_id LIMIT 1) <= $1 ORDER BY at LIMIT $2";
constexpr std::string_view kFirstYoung =
    "SELECT first_event_id FROM journal WHERE session_id = $1 AND at > $2 "
    "ORDER BY first_event_id LIMIT 1";
constexpr std::string_view kTrimSession =
    "DELETE FROM journal WHERE session_id = $1 AND first_event_id IN (SELECT first_event_id "
    "FROM journal WHERE session_id = $1 AND first_event_id < $2 "
    "ORDER BY first_event_id LIMIT $3) RETURNING bytes";
constexpr std::string_view kLessJournal =
    "UPDATE sessions SET journal_bytes = CASE WHEN journal_bytes > $2 THEN journal_bytes - $2 "
    "ELSE 0 END WHERE session_id = $1";

// The first has an index, of sessions with at least this much.
constexpr std::int64_t kIndexedJournalBytes = 1'048'576;
constexpr std::string_view kLargeSessions =
    "SELECT session_id, journal_bytes FROM sessions "
    "WHERE journal_bytes > $1 AND journal_bytes >= 1048576 LIMIT $2";
constexpr std::string_view kLargerSessions =
    "SELECT session_id, journal_bytes FROM sessions WHERE journal_bytes > $1 LIMIT $2";
constexpr std::string_view kCountBytes =
    "SELECT COALESCE(SUM(bytes), 0) FROM journal WHERE session_id = $1";
constexpr std::string_view kOldestBlocks =
    "SELECT first_event_id, bytes FROM journal WHERE session_id = $1 "
    "ORDER BY first_event_id LIMIT $2";
constexpr std::string_view kSetJournalBytes =
    "UPDATE sessions SET journal_bytes = $2 WHERE session_id = $1";

constexpr std::string_view kTrimAudit =
    "DELETE FROM session_events WHERE event_id IN (SELECT event_id FROM session_events "
    "WHERE at <= $1 ORDER BY at, event_id LIMIT $2)";
constexpr std::string_view kTrimRuns =
    "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs "
    "WHERE started_at <= $1 AND ended_at IS NOT NULL ORDER BY started_at LIMIT $2)";

// A turn that was given meanwhile may have left events.
constexpr std::string_view kDropUnansweredJournal =
    "DELETE FROM journal WHERE session_id IN (SELECT session_id FROM sessions "
    "WHERE closed_at IS NULL AND agent_session_id IS NULL AND instance_id <> $1)";
constexpr std::string_view kDropUnanswered =
    "DELETE FROM sessions WHERE closed_at IS NULL AND agent_session_id IS NULL "
    "AND instance_id <> $1";
constexpr std::string_view kAdoptOpen =
    "UPDATE sessions SET instance_id = $1, process_pid = NULL, process_start = NULL, "
    "process_boot_id = NULL WHERE closed_at IS NULL";
constexpr std::string_view kForgetProcesses =
    "UPDATE sessions SET process_pid = NULL, process_start = NULL, process_boot_id = NULL "
    "WHERE closed_at IS NOT NULL AND process_pid IS NOT NULL";
// Of closed sessions, too: another program may have closed one while its agent ran.
constexpr std::string_view kLeftProcesses =
    "SELECT process_pid, process_start, process_boot_id FROM runs WHERE ended_at IS NULL "
    "AND process_pid IS NOT NULL AND (instance_id IS NULL OR instance_id <> $1) UNION ALL "
    "SELECT process_pid, process_start, process_boot_id FROM sessions "
    "WHERE process_pid IS NOT NULL AND (instance_id IS NULL OR instance_id <> $1) LIMIT $2";
// Of sessions that went without us.
constexpr std::string_view kDropLoneTurns =
    "DELETE FROM turns WHERE NOT EXISTS "
    "(SELECT 1 FROM sessions WHERE sessions.session_id = turns.session_id)";

// Takes what was deleted off the session's count.
Result<void> note_less(SqlDriver& driver, const std::string& id, const SqlResult& deleted) {
  std::int64_t bytes = 0;
  for (const SqlRow& row : deleted.rows) bytes += whole_in(row.at(0)).value_or(0);
  return without_rows(driver.execute(kLessJournal, {id, bytes}));
}

Result<bool> delete_step(SqlDriver& driver, const std::string& id, const AuditEvent& event,
                         std::int64_t blocks_max) {
  const auto open = driver.execute(kIsOpen, {id});
  if (!open) return std::unexpected(open.error());
  if (!open->rows.empty()) return false;
  const auto blocks = driver.execute(kDeleteOldest, {id, blocks_max});
  if (!blocks) return std::unexpected(blocks.error());
  if (std::cmp_greater_equal(blocks->rows.size(), blocks_max)) {
    if (auto noted = note_less(driver, id, *blocks); !noted) {
      return std::unexpected(std::move(noted.error()));
    }
    return false;
  }
  const auto turns = driver.execute(kDeleteTurns, {id});
  if (!turns) return std::unexpected(turns.error());
  const auto row = driver.execute(kDeleteClosed, {id});
  if (!row) return std::unexpected(row.error());
  if (row->rows.empty()) return true;
  auto audited = add_audit(driver, id, text_in(row->rows[0].at(0)).value_or(""), event);
  if (!audited) return std::unexpected(std::move(audited.error()));
  return true;
}

// At most `blocks_max` of those before the first young one; gives how many there were.
Result<std::int64_t> trim_old(SqlDriver& driver, const std::string& id, std::int64_t last,
                              std::int64_t blocks_max) {
  const auto young = driver.execute(kFirstYoung, {id, last});
  if (!young) return std::unexpected(young.error());
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const SqlValue keep_from = young->rows.empty() ? SqlValue(kNone) : young->rows[0].at(0);
  const auto trimmed = driver.execute(kTrimSession, {id, keep_from, blocks_max});
  if (!trimmed) return std::unexpected(trimmed.error());
  if (auto noted = note_less(driver, id, *trimmed); !noted) {
    return std::unexpected(std::move(noted.error()));
  }
  return static_cast<std::int64_t>(trimmed->rows.size());
}

Result<std::int64_t> trim_by_time(SqlDriver& driver, std::int64_t last, std::int64_t blocks_max) {
  const auto old = driver.execute(kOldBlocks, {last, blocks_max});
  if (!old) return std::unexpected(old.error());
  std::map<std::string, std::int64_t> blocks;  // how many of each session
  for (const SqlRow& row : old->rows) ++blocks[text_in(row.at(0)).value_or("")];
  std::int64_t count = 0;
  for (const auto& [id, most] : blocks) {
    const auto trimmed = trim_old(driver, id, last, most);
    if (!trimmed) return trimmed;
    count += *trimmed;
  }
  return count;
}

// How much journal a session has; added up where another program has put nonsense.
Result<std::int64_t> journal_bytes(SqlDriver& driver, const std::string& id,
                                   const SqlValue& noted) {
  if (const auto bytes = whole_in(noted)) return *bytes;
  const auto counted = driver.execute(kCountBytes, {id});
  if (!counted) return std::unexpected(counted.error());
  return whole_in(counted->rows.at(0).at(0)).value_or(0);
}

// Removes a session's oldest blocks until it has no more than `bytes_max`; how many.
Result<std::int64_t> trim_session(SqlDriver& driver, const std::string& id, std::int64_t bytes,
                                  std::int64_t bytes_max, std::int64_t blocks_max) {
  const auto oldest = driver.execute(kOldestBlocks, {id, blocks_max});
  if (!oldest) return std::unexpected(oldest.error());
  std::int64_t count = 0;
  for (const SqlRow& row : oldest->rows) {
    if (bytes <= bytes_max) break;
    bytes -= std::max<std::int64_t>(whole_in(row.at(1)).value_or(0), 0);
    ++count;
  }
  const auto deleted = driver.execute(kDeleteOldest, {id, count});
  if (!deleted) return std::unexpected(deleted.error());
  // With no block left there are no bytes, whatever was counted.
  const bool is_empty =
      count == static_cast<std::int64_t>(oldest->rows.size()) && count < blocks_max;
  const auto noted =
      driver.execute(kSetJournalBytes, {id, is_empty ? 0 : std::max<std::int64_t>(bytes, 0)});
  if (!noted) return std::unexpected(noted.error());
  return count;
}

Result<std::int64_t> trim_large(SqlDriver& driver, std::int64_t bytes_max,
                                std::int64_t blocks_max) {
  const auto large =
      driver.execute(bytes_max >= kIndexedJournalBytes ? kLargeSessions : kLargerSessions,
                     {bytes_max, blocks_max});
  if (!large) return std::unexpected(large.error());
  std::int64_t count = 0;
  for (const SqlRow& row : large->rows) {
    if (count >= blocks_max) break;
    const std::string id = text_in(row.at(0)).value_or("");
    const auto bytes = journal_bytes(driver, id, row.at(1));
    if (!bytes) return std::unexpected(bytes.error());
    const auto trimmed = trim_session(driver, id, *bytes, bytes_max, blocks_max - count);
    if (!trimmed) return std::unexpected(trimmed.error());
    count += *trimmed;
  }
  return count;
}

Result<std::int64_t> trim_lists(SqlDriver& driver, std::int64_t last, std::int64_t rows_max) {
  std::int64_t count = 0;
  for (const std::string_view statement : {kTrimAudit, kTrimRuns}) {
    const auto trimmed = driver.execute(statement, {last, rows_max});
    if (!trimmed) return std::unexpected(trimmed.error());
    count += trimmed->changed;
  }
  return count;
}

Result<std::vector<ProcessMark>> select_left(SqlDriver& driver, const std::string& instance_id,
                                             std::int64_t limit) {
  const auto result = driver.execute(kLeftProcesses, {instance_id, limit});
  if (!result) return std::unexpected(result.error());
  std::vector<ProcessMark> marks;
  for (const SqlRow& row : result->rows) {
    const auto pid = whole_in(row.at(0));
    const auto start_time = whole_in(row.at(1));
    auto boot_id = text_in(row.at(2));
    if (pid && start_time && boot_id) marks.push_back({*pid, *start_time, std::move(*boot_id)});
  }
  return marks;
}

Result<std::int64_t> adopt_all(SqlDriver& driver, const std::string& instance_id) {
  const auto emptied = driver.execute(kDropUnansweredJournal, {instance_id});
  if (!emptied) return std::unexpected(emptied.error());
  const auto dropped = driver.execute(kDropUnanswered, {instance_id});
  if (!dropped) return std::unexpected(dropped.error());
  const auto adopted = driver.execute(kAdoptOpen, {instance_id});
  if (!adopted) return std::unexpected(adopted.error());
  for (const std::string_view statement : {kForgetProcesses, kDropLoneTurns}) {
    const auto done = driver.execute(statement);
    if (!done) return std::unexpected(done.error());
  }
  return dropped->changed;
}

}  // namespace

Async<bool> SqlLedger::delete_session(std::string id, AuditEvent event, std::int64_t blocks_max) {
  return worker_.call<bool>(
      Access::write, [id = std::move(id), event = std::move(event), blocks_max](SqlDriver& driver) {
        return delete_step(driver, id, event, blocks_max);
      });
}

Async<std::int64_t> SqlLedger::trim_journal(TimePoint last, std::int64_t blocks_max) {
  return worker_.call<std::int64_t>(Access::write, [last, blocks_max](SqlDriver& driver) {
    return trim_by_time(driver, unix_seconds(last), blocks_max);
  });
}

Async<std::int64_t> SqlLedger::trim_large_journals(std::int64_t bytes_max,
                                                   std::int64_t blocks_max) {
  return worker_.call<std::int64_t>(Access::write, [bytes_max, blocks_max](SqlDriver& driver) {
    return trim_large(driver, bytes_max, blocks_max);
  });
}

Async<std::int64_t> SqlLedger::trim_audit(TimePoint last, std::int64_t rows_max) {
  return worker_.call<std::int64_t>(Access::write, [last, rows_max](SqlDriver& driver) {
    return trim_lists(driver, unix_seconds(last), rows_max);
  });
}

Async<std::vector<ProcessMark>> SqlLedger::left_processes(std::string instance_id,
                                                          std::int64_t limit) {
  return worker_.call<std::vector<ProcessMark>>(
      Access::read, [id = std::move(instance_id), limit](SqlDriver& driver) {
        return select_left(driver, id, limit);
      });
}

Async<std::int64_t> SqlLedger::adopt_sessions(std::string instance_id) {
  return worker_.call<std::int64_t>(
      Access::write,
      [id = std::move(instance_id)](SqlDriver& driver) { return adopt_all(driver, id); });
}

}  // namespace clawdforge
