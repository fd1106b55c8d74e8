// Journals lose their oldest blocks step by step, so that no call holds the ledger for long.
#include <algorithm>
#include <limits>
#include <map>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/sessions/journal_parts.h"
#include "ledger/sessions/journal_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kDeleteOldest =
    "DELETE FROM journal WHERE session_id = $1 AND first_event_id IN (SELECT first_event_id "
    "FROM journal WHERE session_id = $1 ORDER BY first_event_id LIMIT $2) RETURNING bytes";
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
constexpr std::string_view kJournalBytes =
    "SELECT journal_bytes FROM sessions WHERE session_id = $1";
// Removed by one write; the next one goes on.
constexpr std::int64_t kTrimAtWriteBlocksMax = 256;
constexpr std::string_view kCountBytes =
    "SELECT COALESCE(SUM(bytes), 0) FROM journal WHERE session_id = $1";
constexpr std::string_view kOldestBlocks =
    "SELECT first_event_id, bytes FROM journal WHERE session_id = $1 "
    "ORDER BY first_event_id LIMIT $2";
constexpr std::string_view kSetJournalBytes =
    "UPDATE sessions SET journal_bytes = $2 WHERE session_id = $1";

// Takes what was deleted off the session's count. Most of its parts go later.
Result<void> note_less(SqlDriver& driver, const SessionId& id, const SqlResult& deleted) {
  std::int64_t bytes = 0;
  for (const SqlRow& row : deleted.rows) bytes += whole_in(row.at(0)).value_or(0);
  const auto removed = remove_lone_parts(driver, id);
  if (!removed) return std::unexpected(removed.error());
  return without_rows(driver.execute(kLessJournal, {id.str(), bytes}));
}

// At most `blocks_max` of those before the first young one; gives how many there were.
Result<std::int64_t> trim_old_of(SqlDriver& driver, const SessionId& id, std::int64_t last,
                                 std::int64_t blocks_max) {
  const auto young = driver.execute(kFirstYoung, {id.str(), last});
  if (!young) return std::unexpected(young.error());
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const SqlValue keep_from = young->rows.empty() ? SqlValue(kNone) : young->rows[0].at(0);
  const auto trimmed = driver.execute(kTrimSession, {id.str(), keep_from, blocks_max});
  if (!trimmed) return std::unexpected(trimmed.error());
  if (auto noted = note_less(driver, id, *trimmed); !noted) {
    return std::unexpected(std::move(noted.error()));
  }
  return static_cast<std::int64_t>(trimmed->rows.size());
}

Result<std::int64_t> trim_by_time(SqlDriver& driver, std::int64_t last, std::int64_t blocks_max) {
  const auto old = driver.execute(kOldBlocks, {last, blocks_max});
  if (!old) return std::unexpected(old.error());
  std::map<SessionId, std::int64_t> blocks;  // how many of each session
  for (const SqlRow& row : old->rows) ++blocks[id_in<SessionId>(row.at(0))];
  std::int64_t count = 0;
  for (const auto& [id, most] : blocks) {
    const auto trimmed = trim_old_of(driver, id, last, most);
    if (!trimmed) return trimmed;
    count += *trimmed;
  }
  return count;
}

// How much journal a session has; added up where another program has put nonsense.
Result<std::int64_t> journal_bytes(SqlDriver& driver, const SessionId& id, const SqlValue& noted) {
  if (const auto bytes = whole_in(noted)) return *bytes;
  const auto counted = driver.execute(kCountBytes, {id.str()});
  if (!counted) return std::unexpected(counted.error());
  return whole_in(counted->rows.at(0).at(0)).value_or(0);
}

// Removes a session's oldest blocks until it has no more than `bytes_max`; how many.
Result<std::int64_t> trim_session(SqlDriver& driver, const SessionId& id, std::int64_t bytes,
                                  std::int64_t bytes_max, std::int64_t blocks_max) {
  const auto oldest = driver.execute(kOldestBlocks, {id.str(), blocks_max});
  if (!oldest) return std::unexpected(oldest.error());
  std::int64_t count = 0;
  for (const SqlRow& row : oldest->rows) {
    if (bytes <= bytes_max) break;
    bytes -= std::max<std::int64_t>(whole_in(row.at(1)).value_or(0), 0);
    ++count;
  }
  const auto deleted = driver.execute(kDeleteOldest, {id.str(), count});
  if (!deleted) return std::unexpected(deleted.error());
  const auto removed = remove_lone_parts(driver, id);
  if (!removed) return std::unexpected(removed.error());
  // With no block left there are no bytes, whatever was counted.
  const bool is_empty =
      count == static_cast<std::int64_t>(oldest->rows.size()) && count < blocks_max;
  const auto noted =
      driver.execute(kSetJournalBytes, {id.str(), is_empty ? 0 : std::max<std::int64_t>(bytes, 0)});
  if (!noted) return std::unexpected(noted.error());
  return count;
}

Result<std::int64_t> trim_largest(SqlDriver& driver, std::int64_t bytes_max,
                                  std::int64_t blocks_max) {
  const auto large =
      driver.execute(bytes_max >= kIndexedJournalBytes ? kLargeSessions : kLargerSessions,
                     {bytes_max, blocks_max});
  if (!large) return std::unexpected(large.error());
  std::int64_t count = 0;
  for (const SqlRow& row : large->rows) {
    if (count >= blocks_max) break;
    const auto id = id_in<SessionId>(row.at(0));
    const auto bytes = journal_bytes(driver, id, row.at(1));
    if (!bytes) return std::unexpected(bytes.error());
    const auto trimmed = trim_session(driver, id, *bytes, bytes_max, blocks_max - count);
    if (!trimmed) return std::unexpected(trimmed.error());
    count += *trimmed;
  }
  return count;
}

}  // namespace

Result<std::int64_t> remove_oldest_blocks(SqlDriver& driver, const SessionId& session_id,
                                          std::int64_t blocks_max) {
  const auto deleted = driver.execute(kDeleteOldest, {session_id.str(), blocks_max});
  if (!deleted) return std::unexpected(deleted.error());
  if (auto noted = note_less(driver, session_id, *deleted); !noted) {
    return std::unexpected(std::move(noted.error()));
  }
  return static_cast<std::int64_t>(deleted->rows.size());
}

Result<void> keep_journal_within(SqlDriver& driver, const SessionId& session_id,
                                 std::int64_t bytes_max) {
  const auto noted = driver.execute(kJournalBytes, {session_id.str()});
  if (!noted) return std::unexpected(noted.error());
  if (noted->rows.empty()) return {};
  const auto bytes = journal_bytes(driver, session_id, noted->rows[0].at(0));
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes <= bytes_max) return {};
  const auto trimmed = trim_session(driver, session_id, *bytes, bytes_max, kTrimAtWriteBlocksMax);
  if (!trimmed) return std::unexpected(trimmed.error());
  return {};
}

Async<std::int64_t> JournalRows::trim_old(TimePoint last, std::int64_t blocks_max) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [last, blocks_max](SqlDriver& driver) {
    return trim_by_time(driver, unix_seconds(last), blocks_max);
  });
}

Async<std::int64_t> JournalRows::trim_large(std::int64_t bytes_max, std::int64_t blocks_max) {
  return worker_.call<std::int64_t>(Lane(), Access::write,
                                    [bytes_max, blocks_max](SqlDriver& driver) {
                                      return trim_largest(driver, bytes_max, blocks_max);
                                    });
}

}  // namespace clawdforge
