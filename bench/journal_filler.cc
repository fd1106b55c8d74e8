#include "journal_filler.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <string_view>

#include "server.h"

namespace clawdforge {
namespace {

// 250,000 turns of four events each: of one session, or of 1,000.
constexpr std::string_view kTurns = R"(
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -500000;
BEGIN;
CREATE TEMP TABLE filled (session_id TEXT, turn_index INTEGER, app_name TEXT);
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 249999)
INSERT INTO filled
SELECT CASE WHEN {0} THEN '{1}' ELSE printf('01a00000-0000-7000-8000-%012x', n / 250) END,
  CASE WHEN {0} THEN n + 1 ELSE n % 250 + 1 END, 'bench' FROM numbers;
INSERT INTO journal (session_id, first_event_id, last_event_id, turn_index, at, bytes, events)
SELECT session_id, turn_index * 4 - 3, turn_index * 4, turn_index, unixepoch(), length(lines), lines
FROM (SELECT session_id, turn_index,
  printf('{{"id":%d,"turn_index":%d,"event":"update","data":{2}}}' || char(10), turn_index * 4 - 3,
    turn_index) ||
  printf('{{"id":%d,"turn_index":%d,"event":"update","data":{2}}}' || char(10), turn_index * 4 - 2,
    turn_index) ||
  printf('{{"id":%d,"turn_index":%d,"event":"update","data":{2}}}' || char(10), turn_index * 4 - 1,
    turn_index) ||
  printf('{{"id":%d,"turn_index":%d,"event":"done","data":{2}}}' || char(10), turn_index * 4,
    turn_index) AS lines FROM filled);
INSERT INTO turns (session_id, turn_index, state, started_at, ended_at, stop_reason)
SELECT session_id, turn_index, 'done', unixepoch(), unixepoch(), 'end_turn' FROM filled;
INSERT INTO session_events (session_id, app_name, event, at)
SELECT session_id, app_name, 'turn', unixepoch() FROM filled;
INSERT INTO sessions (session_id, app_name, agent, created_at, closed_at, close_reason)
SELECT DISTINCT session_id, app_name, 'instant', unixepoch(), unixepoch(), 'closed' FROM filled
WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE sums AS SELECT session_id, MAX(turn_index) AS turns, MAX(last_event_id) AS events,
  SUM(bytes) AS bytes FROM journal GROUP BY session_id;
UPDATE sessions SET turn_count = sums.turns, last_event_id = sums.events, journal_bytes = sums.bytes
FROM sums WHERE sums.session_id = sessions.session_id;
CREATE TEMP TABLE checked (events INTEGER CHECK (events = 1000000));
INSERT INTO checked SELECT SUM(last_event_id - first_event_id + 1) FROM journal;
COMMIT;
PRAGMA wal_checkpoint(TRUNCATE);
)";
constexpr std::string_view kData =
    R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"instant-1-1","update":)"
    R"({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word 0 "}}}})";

}  // namespace

void fill_journal(const std::string& database, const std::string& session_id, Fill fill) {
  if (fill == Fill::nothing) return;
  sqlite3* handle = nullptr;
  const std::string sql =
      fmt::format(fmt::runtime(kTurns), fill == Fill::this_session ? 1 : 0, session_id, kData);
  char* error = nullptr;
  const bool is_filled =
      sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error) == SQLITE_OK;
  const std::string reason = error != nullptr ? error : sqlite3_errmsg(handle);
  sqlite3_free(error);
  sqlite3_close(handle);
  if (!is_filled) give_up("the ledger was not filled: " + reason);
  ::sync();  // what is left to be written is not to be the turns' burden
}

}  // namespace clawdforge
