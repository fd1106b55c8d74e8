// This is on the path of every turn: a few statements by primary key.
#include "ledger/rows/journal_rows.h"

#include <algorithm>
#include <cmath>

#include "ledger/core/row_values.h"
#include "ledger/rows/audit_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kOwner = "SELECT instance_id FROM sessions WHERE session_id = $1";
constexpr std::string_view kStartTurn =
    "INSERT INTO turns (session_id, turn_index, state, started_at, instance_id) "
    "VALUES ($1, $2, 'accepted', $3, $4) ON CONFLICT (session_id, turn_index) DO NOTHING";
constexpr std::string_view kAddBlock =
    "INSERT INTO journal (session_id, first_event_id, last_event_id, turn_index, at, bytes, "
    "events) VALUES ($1, $2, $3, $4, $5, $6, $7) "
    "ON CONFLICT (session_id, first_event_id) DO NOTHING";
constexpr std::string_view kEndTurn =
    "UPDATE turns SET state = $3, ended_at = $4, stop_reason = $5, code = $6, input_tokens = $7, "
    "output_tokens = $8, cache_read_tokens = $9, cache_write_tokens = $10, cost_usd = $11 "
    "WHERE session_id = $1 AND turn_index = $2 AND ended_at IS NULL";
// A text that another program has put in place of a number is larger than every number, and
// must not stay for ever: hence the upper bounds.
constexpr std::string_view kNoteProgress =
    "UPDATE sessions SET "
    "turn_count = CASE WHEN turn_count BETWEEN $2 AND 9223372036854775807 "
    "THEN turn_count ELSE $2 END, "
    "last_event_id = CASE WHEN last_event_id BETWEEN $3 AND 9223372036854775807 "
    "THEN last_event_id ELSE $3 END, "
    "last_turn_at = COALESCE($4, last_turn_at), journal_bytes = journal_bytes + $5, "
    "input_tokens = input_tokens + $6, output_tokens = output_tokens + $7, "
    "cache_read_tokens = cache_read_tokens + $8, cache_write_tokens = cache_write_tokens + $9, "
    "cost_usd = COALESCE(cost_usd + $10, $10, cost_usd) WHERE session_id = $1";
constexpr std::string_view kUnfinishedTurns =
    "SELECT turns.session_id, sessions.app_name, turns.turn_index, sessions.last_event_id, "
    "turns.started_at FROM turns JOIN sessions ON sessions.session_id = turns.session_id "
    "WHERE turns.ended_at IS NULL AND (turns.instance_id IS NULL OR turns.instance_id <> $1) "
    "AND turns.turn_index BETWEEN 0 AND 9223372036854775807 "
    "ORDER BY turns.started_at, turns.turn_index LIMIT $2";

// Where a page of the journal begins and how far it goes, by the sizes of its blocks alone.
// The block that holds $2 + 1 may begin before it.
constexpr std::string_view kJournalSizes =
    "SELECT first_event_id, bytes FROM journal WHERE session_id = $1 AND first_event_id >= "
    "COALESCE((SELECT MAX(first_event_id) FROM journal WHERE session_id = $1 AND "
    "first_event_id <= $2 + 1), 0) AND last_event_id > $2 ORDER BY first_event_id LIMIT $3";
constexpr std::string_view kJournalBlocks =
    "SELECT first_event_id, last_event_id, turn_index, at, events FROM journal "
    "WHERE session_id = $1 AND first_event_id BETWEEN $2 AND $3 AND last_event_id > $4 "
    "ORDER BY first_event_id";
constexpr std::int64_t kJournalPageRowsMax = 256;

// What one write brings to the session's row.
struct Progress {
  std::int64_t turn_count = 0;
  std::int64_t last_event_id = 0;
  std::optional<std::int64_t> last_turn_at;
  std::int64_t bytes = 0;
  Usage usage;
  std::optional<double> cost_usd;
  std::int64_t news = 0;  // rows added or ended

  void note_turn_at(TimePoint at) {
    last_turn_at = std::max(last_turn_at.value_or(0), unix_seconds(at));
  }
};

Result<void> start_turns(SqlDriver& driver, const SessionWrite& write, const SqlValue& owner,
                         Progress& progress) {
  for (const TurnStart& start : write.starts) {
    const auto started =
        driver.execute(kStartTurn, {write.session_id, start.index, unix_seconds(start.at), owner});
    if (!started) return std::unexpected(started.error());
    progress.turn_count = std::max(progress.turn_count, start.index);
    progress.note_turn_at(start.at);
    progress.news += started->changed;
  }
  return {};
}

// A block with the row that it becomes. The lines may be large, and the work may run again:
// so they are moved into the row once, before it.
struct BlockRow {
  BlockRow(const std::string& session_id, JournalBlock block)
      : last_event_id(block.last_event_id), bytes(static_cast<std::int64_t>(block.lines.size())) {
    params = {session_id,       block.first_event_id,   block.last_event_id,
              block.turn_index, unix_seconds(block.at), bytes};
    params.emplace_back(std::move(block.lines));
  }

  std::int64_t last_event_id;
  std::int64_t bytes;
  SqlRow params;
};

Result<void> add_blocks(SqlDriver& driver, const std::vector<BlockRow>& blocks,
                        Progress& progress) {
  for (const BlockRow& block : blocks) {
    const auto added = driver.execute(kAddBlock, block.params);
    if (!added) return std::unexpected(added.error());
    progress.last_event_id = std::max(progress.last_event_id, block.last_event_id);
    if (added->changed == 0) continue;
    progress.bytes += block.bytes;
    ++progress.news;
  }
  return {};
}

SqlRow row_of(const std::string& session_id, const TurnSettled& end) {
  SqlRow row = {
      session_id,         end.index, end.state, unix_seconds(end.at), sql_value(end.stop_reason),
      sql_value(end.code)};
  append_usage(row, end.usage);
  row.push_back(sql_value(end.cost_usd));
  return row;
}

// A turn that has ended already is not counted again.
Result<void> end_turns(SqlDriver& driver, const SessionWrite& write, Progress& progress) {
  for (const TurnSettled& end : write.ends) {
    const auto ended = driver.execute(kEndTurn, row_of(write.session_id, end));
    if (!ended) return std::unexpected(ended.error());
    progress.note_turn_at(end.at);
    if (ended->changed == 0) continue;
    ++progress.news;
    const Usage used = end.usage.value_or(Usage());
    progress.usage.input_tokens += used.input_tokens;
    progress.usage.output_tokens += used.output_tokens;
    progress.usage.cache_read_tokens += used.cache_read_tokens;
    progress.usage.cache_write_tokens += used.cache_write_tokens;
    if (end.cost_usd && std::isfinite(*end.cost_usd)) {
      progress.cost_usd = progress.cost_usd.value_or(0) + *end.cost_usd;
    }
  }
  return {};
}

Result<void> note_progress(SqlDriver& driver, const std::string& session_id,
                           const Progress& progress) {
  SqlRow params = {session_id, progress.turn_count, progress.last_event_id,
                   sql_value(progress.last_turn_at), progress.bytes};
  append_usage(params, progress.usage);
  params.push_back(sql_value(progress.cost_usd));
  return without_rows(driver.execute(kNoteProgress, params));
}

// `blocks` are those of `write`.
Result<void> write_all(SqlDriver& driver, const SessionWrite& write,
                       const std::vector<BlockRow>& blocks) {
  const auto owner = driver.execute(kOwner, {write.session_id});
  if (!owner) return std::unexpected(owner.error());
  if (owner->rows.empty()) return {};
  Progress progress;
  auto started = start_turns(driver, write, owner->rows[0].at(0), progress);
  if (!started) return started;
  auto added = add_blocks(driver, blocks, progress);
  if (!added) return added;
  auto ended = end_turns(driver, write, progress);
  if (!ended) return ended;
  const bool has_parts = !write.starts.empty() || !blocks.empty() || !write.ends.empty();
  if (has_parts) {
    auto noted = note_progress(driver, write.session_id, progress);
    if (!noted) return noted;
  }
  // One of which all is there has been committed before, although its caller was told that
  // it was not: the answer to a commit can get lost.
  if (has_parts && progress.news == 0) return {};
  for (const AuditEvent& event : write.audit) {
    auto audited = add_audit(driver, write.session_id, write.app, event);
    if (!audited) return audited;
  }
  return {};
}

Result<std::vector<JournalBlock>> select_blocks(SqlDriver& driver, const std::string& session_id,
                                                std::int64_t after, std::size_t bytes_max) {
  const auto sizes = driver.execute(kJournalSizes, {session_id, after, kJournalPageRowsMax});
  if (!sizes) return std::unexpected(sizes.error());
  std::vector<JournalBlock> blocks;
  if (sizes->rows.empty()) return blocks;
  std::int64_t last = whole_in(sizes->rows[0].at(0)).value_or(0);
  std::int64_t bytes = 0;
  for (const SqlRow& row : sizes->rows) {
    bytes += whole_in(row.at(1)).value_or(0);
    if (bytes > static_cast<std::int64_t>(bytes_max)) break;
    last = std::max(last, whole_in(row.at(0)).value_or(0));
  }
  auto result = driver.execute(
      kJournalBlocks, {session_id, whole_in(sizes->rows[0].at(0)).value_or(0), last, after});
  if (!result) return std::unexpected(std::move(result.error()));
  for (SqlRow& row : result->rows) {
    const auto first = whole_in(row.at(0));
    const auto final = whole_in(row.at(1));
    if (!first || !final || *final < *first) continue;
    blocks.push_back({.first_event_id = *first,
                      .last_event_id = *final,
                      .turn_index = whole_in(row.at(2)).value_or(0),
                      .at = time_in(row.at(3)).value_or(TimePoint()),
                      .lines = text_in(row.at(4)).value_or("")});
  }
  return blocks;
}

Result<std::vector<UnfinishedTurn>> select_unfinished(SqlDriver& driver,
                                                      const std::string& instance_id,
                                                      std::int64_t limit) {
  auto result = driver.execute(kUnfinishedTurns, {instance_id, limit});
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<UnfinishedTurn> turns;
  for (const SqlRow& row : result->rows) {
    const auto index = whole_in(row.at(2));
    if (!index) continue;
    turns.push_back({.session_id = text_in(row.at(0)).value_or(""),
                     .app = text_in(row.at(1)).value_or(""),
                     .index = *index,
                     .last_event_id = std::max<std::int64_t>(whole_in(row.at(3)).value_or(0), 0),
                     .started_at = time_in(row.at(4)).value_or(TimePoint())});
  }
  return turns;
}

}  // namespace

Async<void> JournalRows::write(SessionWrite write) {
  std::vector<BlockRow> blocks;
  blocks.reserve(write.blocks.size());
  for (JournalBlock& block : write.blocks) {
    blocks.emplace_back(write.session_id, std::move(block));
  }
  write.blocks.clear();
  return worker_.call<void>(
      Access::write,
      [write = std::move(write), blocks = std::move(blocks)](SqlDriver& driver) {
        return write_all(driver, write, blocks);
      },
      OnStall::wait);
}

Async<std::vector<JournalBlock>> JournalRows::page(std::string session_id, std::int64_t after,
                                                   std::size_t bytes_max) const {
  return worker_.call<std::vector<JournalBlock>>(
      Access::read, [id = std::move(session_id), after, bytes_max](SqlDriver& driver) {
        return select_blocks(driver, id, after, bytes_max);
      });
}

Async<std::vector<UnfinishedTurn>> JournalRows::unfinished_turns(std::int64_t limit) const {
  return worker_.call<std::vector<UnfinishedTurn>>(
      Access::read,
      [self = self_, limit](SqlDriver& driver) { return select_unfinished(driver, self, limit); });
}

}  // namespace clawdforge
