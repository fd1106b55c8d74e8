// This is on the path of every turn: a few statements by primary key.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "ledger/core/columns.h"
#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/hooks/delivery_write.h"
#include "ledger/keys/key_write.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/sessions/journal_parts.h"
#include "ledger/sessions/journal_rows.h"
#include "ledger/usage/budget_rows.h"
#include "ledger/usage/usage_count.h"

namespace clawdforge {
namespace {

constexpr std::string_view kStartTurn =
    "INSERT INTO turns (session_id, turn_index, state, started_at, instance_id, first_event_id) "
    "VALUES ($1, $2, 'accepted', $3, $4, $5) ON CONFLICT (session_id, turn_index) DO NOTHING";
constexpr std::string_view kGiveTitle =
    "UPDATE sessions SET title = $2 WHERE session_id = $1 AND title IS NULL";
constexpr std::string_view kAddBlock =
    "INSERT INTO journal (session_id, first_event_id, last_event_id, turn_index, at, bytes, "
    "events) VALUES ($1, $2, $3, $4, $5, $6, $7) "
    "ON CONFLICT (session_id, first_event_id) DO NOTHING";
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
    "cost_usd = COALESCE(cost_usd + $10, $10, cost_usd) WHERE session_id = $1{}";
// The same as guard and sum in one: nothing changes unless the events come next after those of
// the row, and the row is ours to write.
constexpr std::string_view kIfNext = " AND last_event_id = $11 AND {}";
constexpr std::string_view kMayWrite =
    "SELECT CASE WHEN {} THEN 1 ELSE 0 END FROM sessions WHERE session_id = $1";

// A block with the row that it becomes. The lines may be large, so the row shares them; those of a
// block that is in parts are not in it.
struct BlockRow {
  BlockRow(const SessionId& session_id, const JournalBlock& block, SharedText lines)
      : first_event_id(block.first_event_id),
        last_event_id(block.last_event_id),
        bytes(static_cast<std::int64_t>(block.lines.size())) {
    params = {session_id.str(), block.first_event_id,   block.last_event_id,
              block.turn_index, unix_seconds(block.at), bytes};
    if (is_in_parts(block.lines.size())) {
      params.emplace_back(std::string());
    } else {
      params.emplace_back(std::move(lines));
    }
  }

  std::int64_t first_event_id;
  std::int64_t last_event_id;
  std::int64_t bytes;
  SqlRow params;
};

// What a write brings to the session's row.
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
  // What is not new counts no second time.
  void add(const TurnStart& start, bool is_new) {
    turn_count = std::max(turn_count, start.index);
    note_turn_at(start.at);
    news += is_new ? 1 : 0;
  }
  void add(const BlockRow& block, bool is_new) {
    last_event_id = std::max(last_event_id, block.last_event_id);
    if (!is_new) return;
    bytes += block.bytes;
    ++news;
  }
  void add(const TurnSettled& end, bool is_new) {
    note_turn_at(end.at);
    if (!is_new) return;
    ++news;
    const Usage used = end.usage.value_or(Usage());
    usage.input_tokens += used.input_tokens;
    usage.output_tokens += used.output_tokens;
    usage.cache_read_tokens += used.cache_read_tokens;
    usage.cache_write_tokens += used.cache_write_tokens;
    if (end.cost_usd && std::isfinite(*end.cost_usd)) {
      cost_usd = cost_usd.value_or(0) + *end.cost_usd;
    }
  }
  SqlRow params(const SessionId& session_id) const {
    return {session_id.str(),
            turn_count,
            last_event_id,
            sql_value(last_turn_at),
            bytes,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            sql_value(cost_usd)};
  }
};

// What is written of a turn's end: a line for each column.
struct TurnEndColumn {
  std::string_view name;
  SqlValue (*value)(const TurnSettled&);
};

constexpr TurnEndColumn kTurnEndColumns[] = {
    {"state", [](const TurnSettled& end) -> SqlValue { return std::string(name_of(end.state)); }},
    {"ended_at", [](const TurnSettled& end) -> SqlValue { return unix_seconds(end.at); }},
    {"stop_reason", [](const TurnSettled& end) { return sql_value(end.stop_reason); }},
    {"code", [](const TurnSettled& end) { return sql_value(end.code); }},
    {"input_tokens",
     [](const TurnSettled& end) { return tokens_value<&Usage::input_tokens>(end.usage); }},
    {"output_tokens",
     [](const TurnSettled& end) { return tokens_value<&Usage::output_tokens>(end.usage); }},
    {"cache_read_tokens",
     [](const TurnSettled& end) { return tokens_value<&Usage::cache_read_tokens>(end.usage); }},
    {"cache_write_tokens",
     [](const TurnSettled& end) { return tokens_value<&Usage::cache_write_tokens>(end.usage); }},
    {"cost_usd", [](const TurnSettled& end) { return sql_value(end.cost_usd); }},
    {"error", [](const TurnSettled& end) { return sql_value(end.error); }},
    {"agent_ms", [](const TurnSettled& end) { return sql_value(end.agent_ms); }},
    {"last_event_id", [](const TurnSettled& end) -> SqlValue { return end.last_event_id; }},
    {"duration_ms", [](const TurnSettled& end) -> SqlValue { return end.duration_ms; }},
};

SqlRow row_of(const SessionId& session_id, const TurnSettled& end) {
  return with_values({session_id.str(), end.index}, kTurnEndColumns, &TurnEndColumn::value, end);
}

// In the usage, with the change that ends the turn's row, so never twice.
Result<void> count_turn(SqlDriver& driver, const AppName& app, const TurnSettled& end) {
  return count_ask(
      driver, {.app = app,
               .agent = end.agent,
               .model = end.model,
               .kind = AskKind::turn,
               .has_failed = end.state == TurnState::failed || end.state == TurnState::interrupted,
               .is_answered = end.state == TurnState::done,
               .tokens = end.usage.value_or(Usage()),
               .nano_usd = nano_usd_of(end.cost_usd),
               .agent_ms = end.agent_ms.value_or(0),
               .ended_at = end.at});
}

// A write with its blocks as rows.
struct PreparedWrite {
  std::shared_ptr<const SessionWrite> write;
  std::vector<BlockRow> blocks;
  InstanceId self;

  Progress progress() const {
    Progress all;
    for (const TurnStart& start : write->starts) all.add(start, true);
    for (const BlockRow& block : blocks) all.add(block, true);
    for (const TurnSettled& end : write->ends) all.add(end, true);
    return all;
  }
  bool has_parts() const {
    return !write->starts.empty() || !blocks.empty() || !write->ends.empty();
  }
};

const TurnStart* start_of(const SessionWrite& write, std::int64_t index) {
  const auto found = std::ranges::find(write.starts, index, &TurnStart::index);
  return found == write.starts.end() ? nullptr : &*found;
}

bool has_end_of(const SessionWrite& write, std::int64_t index) {
  return std::ranges::find(write.ends, index, &TurnSettled::index) != write.ends.end();
}

// Whether this ended the turn: it may have ended before.
Result<bool> end_turn(SqlDriver& driver, const PreparedWrite& prepared, const TurnSettled& end,
                      Progress& progress) {
  const SessionWrite& write = *prepared.write;
  SqlRow row = row_of(write.session_id, end);
  if (const TurnStart* const start = start_of(write, end.index)) {
    row.emplace_back(unix_seconds(start->at));
    row.emplace_back(prepared.self.str());
    row.emplace_back(start->first_event_id);
    // One statement less than two, and the turn never is in the index of unfinished ones.
    static const std::string kAddEndedTurn = fmt::format(
        "INSERT INTO turns (session_id, turn_index, {}, started_at, instance_id, first_event_id) "
        "VALUES ({}) ON CONFLICT (session_id, turn_index) DO NOTHING",
        column_names(kTurnEndColumns, &TurnEndColumn::value), parameters(row.size()));
    const auto added = changed_by(driver.execute(kAddEndedTurn, row));
    if (!added) return std::unexpected(added.error());
    progress.add(*start, *added > 0);
    if (*added > 0) return true;
    row.resize(row.size() - 3);
  }
  static const std::string kEndTurn =
      update_of("turns", kTurnEndColumns, &TurnEndColumn::value, 3) +
      " WHERE session_id = $1 AND turn_index = $2 AND ended_at IS NULL";
  const auto ended = changed_by(driver.execute(kEndTurn, row));
  if (!ended) return std::unexpected(ended.error());
  return *ended > 0;
}

// The rows of turns and blocks; gives what of them was new.
Result<Progress> add_rows(SqlDriver& driver, const PreparedWrite& prepared) {
  const SessionWrite& write = *prepared.write;
  Progress progress;
  for (const TurnStart& start : write.starts) {
    if (!start.title.empty()) {
      const auto given = driver.execute(kGiveTitle, {write.session_id.str(), start.title});
      if (!given) return std::unexpected(given.error());
    }
    if (has_end_of(write, start.index)) continue;
    if (start.key) {
      if (auto begun = begin_key(driver, *start.key); !begun) {
        return std::unexpected(std::move(begun.error()));
      }
    }
    const auto added = changed_by(
        driver.execute(kStartTurn, {write.session_id.str(), start.index, unix_seconds(start.at),
                                    prepared.self.str(), start.first_event_id}));
    if (!added) return std::unexpected(added.error());
    progress.add(start, *added > 0);
  }
  for (const BlockRow& block : prepared.blocks) {
    const auto added = changed_by(driver.execute(kAddBlock, block.params));
    if (!added) return std::unexpected(added.error());
    progress.add(block, *added > 0);
  }
  for (const TurnSettled& end : write.ends) {
    const auto ended = end_turn(driver, prepared, end, progress);
    if (!ended) return std::unexpected(ended.error());
    progress.add(end, *ended);
    if (!*ended || !end.agent_ms) continue;
    if (auto counted = count_turn(driver, write.app, end); !counted) {
      return std::unexpected(std::move(counted.error()));
    }
  }
  return progress;
}

constexpr std::string_view kWebhookOf =
    "SELECT webhook FROM sessions WHERE session_id = $1 AND webhook IS NOT NULL";

Result<void> tell(SqlDriver& driver, const SessionWrite& write) {
  if (write.news.empty()) return {};
  const auto found = driver.execute(kWebhookOf, {write.session_id.str()});
  if (!found) return std::unexpected(found.error());
  if (found->rows.empty()) return {};
  for (const SessionNews& news : write.news) {
    auto added = add_delivery(driver, {.id = news.id,
                                       .app = write.app,
                                       .url = text_in(found->rows[0].at(0)).value_or(""),
                                       .type = news.type,
                                       .body = news.body,
                                       .at = news.at});
    if (!added) return added;
  }
  return {};
}

Result<void> add_lines(SqlDriver& driver, const SessionWrite& write) {
  for (const AuditEvent& event : write.audit) {
    auto audited = add_audit(driver, write.session_id, write.app, event);
    if (!audited) return audited;
  }
  return tell(driver, write);
}

// Whether the session's row took the sums: its next events are these, and it is ours.
Result<bool> advance(SqlDriver& driver, const PreparedWrite& prepared) {
  static const std::string kAdvance =
      fmt::format(kNoteProgress, fmt::format(kIfNext, may_be_written_by("sessions", "$12")));
  if (prepared.blocks.empty()) return false;
  SqlRow params = prepared.progress().params(prepared.write->session_id);
  params.emplace_back(prepared.blocks.front().first_event_id - 1);
  params.emplace_back(prepared.self.str());
  const auto changed = changed_by(driver.execute(kAdvance, params));
  if (!changed) return std::unexpected(changed.error());
  return *changed > 0;
}

// False: there is no such session any more.
Result<bool> may_write(SqlDriver& driver, const SessionId& id, const InstanceId& self) {
  static const std::string kMay = fmt::format(kMayWrite, may_be_written_by("sessions", "$2"));
  const auto may = driver.execute(kMay, {id.str(), self.str()});
  if (!may) return std::unexpected(may.error());
  if (may->rows.empty()) return false;
  if (whole_in(may->rows[0].at(0)) == 1) return true;
  return fail(Errc::gone, "session_closed", "The session is closed.",
              "another gateway has taken the session over");
}

// What the guard did not let pass: a write without events, one that is repeated, or numbers
// that another program has changed. Counts only what is new.
Result<void> write_what_is_new(SqlDriver& driver, const PreparedWrite& prepared) {
  static const std::string kNote = fmt::format(kNoteProgress, "");
  const SessionId& id = prepared.write->session_id;
  const auto may = may_write(driver, id, prepared.self);
  if (!may) return std::unexpected(may.error());
  if (!*may) return {};
  const auto progress = add_rows(driver, prepared);
  if (!progress) return std::unexpected(progress.error());
  if (prepared.has_parts()) {
    const auto noted = driver.execute(kNote, progress->params(id));
    if (!noted) return std::unexpected(noted.error());
    // One of which all is there has been committed before, although its caller was told that
    // it was not: the answer to a commit can get lost.
    if (progress->news == 0) return {};
  }
  return add_lines(driver, *prepared.write);
}

Result<void> write_parts(SqlDriver& driver, const PreparedWrite& prepared) {
  const auto advanced = advance(driver, prepared);
  if (!advanced) return std::unexpected(advanced.error());
  if (!*advanced) return write_what_is_new(driver, prepared);
  const auto added = add_rows(driver, prepared);
  if (!added) return std::unexpected(added.error());
  return add_lines(driver, *prepared.write);
}

// After the turns. One that begins and ends in the same write has not begun its key before.
Result<void> write_keys(SqlDriver& driver, const SessionWrite& write) {
  for (const TurnSettled& end : write.ends) {
    if (!end.key) continue;
    if (auto written = write_key(driver, *end.key); !written) return written;
  }
  return {};
}

Result<void> write_all(SqlDriver& driver, const PreparedWrite& prepared) {
  for (const TurnSettled& end : prepared.write->ends) {
    if (end.reservation.empty()) continue;
    if (auto released = release_in(driver, end.reservation); !released) return released;
  }
  auto written = write_parts(driver, prepared);
  if (written) written = write_keys(driver, *prepared.write);
  const auto bytes_max = prepared.write->journal_bytes_max;
  if (!written || !bytes_max) return written;
  return keep_journal_within(driver, prepared.write->session_id, *bytes_max);
}

struct Part {
  std::int64_t first_event_id;
  std::int64_t number;
  std::string_view lines;
};

Result<void> write_part(SqlDriver& driver, const SessionWrite& write, const InstanceId& self,
                        const Part& part) {
  const auto may = may_write(driver, write.session_id, self);
  if (!may) return std::unexpected(may.error());
  if (!*may) return {};
  return add_part(driver, write.session_id, part.first_event_id, part.number,
                  std::string(part.lines));
}

}  // namespace

Async<void> JournalRows::write(std::shared_ptr<const SessionWrite> write) {
  const auto is_large = [](const JournalBlock& block) { return is_in_parts(block.lines.size()); };
  if (std::ranges::any_of(write->blocks, is_large)) return write_in_parts(std::move(write));
  return write_rows(std::move(write));
}

// The parts of all large blocks, each in a call of its own, then the rows.
Async<void> JournalRows::write_in_parts(std::shared_ptr<const SessionWrite> write) {
  for (const JournalBlock& block : write->blocks) {
    if (!is_in_parts(block.lines.size())) continue;
    std::string_view rest = block.lines;
    for (std::int64_t part = 0; !rest.empty(); ++part) {
      const std::string_view lines = cut_to(rest, kJournalPartBytesMax);
      rest.remove_prefix(lines.size());
      auto added = co_await worker_.call<void>(
          Lane(write->app), Access::write,
          [write, id = block.first_event_id, part, lines, self = self_](SqlDriver& driver) {
            return write_part(driver, *write, self, {id, part, lines});
          },
          OnStall::wait, lines.size());
      if (!added) co_return added;
    }
  }
  co_return co_await write_rows(std::move(write));
}

Async<void> JournalRows::write_rows(std::shared_ptr<const SessionWrite> write) {
  PreparedWrite prepared{.write = write, .blocks = {}, .self = self_};
  prepared.blocks.reserve(write->blocks.size());
  std::size_t bytes = 0;
  for (const JournalBlock& block : write->blocks) {
    if (!is_in_parts(block.lines.size())) bytes += block.lines.size();
    prepared.blocks.emplace_back(write->session_id, block, SharedText(write, &block.lines));
  }
  return worker_.call<void>(
      Lane(write->app), Access::write,
      [prepared = std::move(prepared)](SqlDriver& driver) { return write_all(driver, prepared); },
      OnStall::wait, bytes);
}

Async<void> JournalRows::write(SessionWrite write) {
  return this->write(std::make_shared<const SessionWrite>(std::move(write)));
}

}  // namespace clawdforge
