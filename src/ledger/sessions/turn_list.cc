// The list of a session's turns, each with the `turn` event that its journal has of it.
#include <utility>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/sessions/journal_parts.h"
#include "ledger/sessions/journal_rows.h"

namespace clawdforge {
namespace {

// A turn's `turn` event is the first of a block, since a block holds events of one turn. Most are
// short: only the beginning of the block is read with the list.
constexpr std::string_view kTurnList =
    "SELECT turn_index, state, code, error, stop_reason, started_at, ended_at, duration_ms, "
    "first_event_id, last_event_id, cost_usd, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, (SELECT SUBSTR(events, 1, 2048) FROM journal "
    "WHERE journal.session_id = turns.session_id "
    "AND journal.first_event_id = turns.first_event_id) "
    "FROM turns WHERE session_id = $1 AND turn_index > $2 "
    "AND turn_index BETWEEN 1 AND 9223372036854775807 ORDER BY turn_index LIMIT $3";
constexpr std::string_view kOpeningBlock =
    "SELECT events FROM journal WHERE session_id = $1 AND first_event_id = $2";
constexpr std::string_view kOpenTurnAt =
    "SELECT MIN(first_event_id) FROM turns WHERE session_id = $1 AND first_event_id <= $2 "
    "AND (last_event_id IS NULL OR last_event_id > $2)";
// What the `turn` events of a page come to, but for the last of them.
constexpr std::size_t kTurnPageBytesMax = 4 * 1024 * 1024;

TurnRecord turn_from(const SqlRow& row) {
  TurnRecord turn{
      .index = whole_in(row.at(0)).value_or(0),
      .state = turn_state_from(text_in(row.at(1)).value_or("")).value_or(TurnState::accepted),
      .code = text_in(row.at(2)),
      .error = text_in(row.at(3)),
      .stop_reason = text_in(row.at(4)),
      .started_at = time_in(row.at(5)).value_or(TimePoint()),
      .ended_at = time_in(row.at(6)),
      .duration_ms = whole_in(row.at(7)),
      .usage = {},
      .cost_usd = number_in(row.at(10)),
      .first_event_id = whole_in(row.at(8)),
      .last_event_id = whole_in(row.at(9)),
      .opening = {}};
  read_tokens<&Usage::input_tokens>(turn.usage, row.at(11));
  read_tokens<&Usage::output_tokens>(turn.usage, row.at(12));
  read_tokens<&Usage::cache_read_tokens>(turn.usage, row.at(13));
  read_tokens<&Usage::cache_write_tokens>(turn.usage, row.at(14));
  return turn;
}

// The data of the `turn` event in the first line of `lines`; empty: there is none.
std::string opening_in(std::string_view lines, const TurnRecord& turn) {
  const std::size_t end = lines.find('\n');
  if (end == lines.npos) return {};
  const auto event = event_in(lines.substr(0, end));
  const bool is_opening =
      event && event->kind == EventKind::turn && event->turn_index == turn.index;
  return is_opening ? std::string(event->json) : std::string();
}

Result<std::string> opening_of(SqlDriver& driver, const SessionId& session_id,
                               const TurnRecord& turn,
                               const std::optional<std::string>& beginning) {
  if (!turn.first_event_id || !beginning) return std::string();
  if (beginning->find('\n') != beginning->npos) return opening_in(*beginning, turn);
  auto block = driver.execute(kOpeningBlock, {session_id.str(), *turn.first_event_id});
  if (!block) return std::unexpected(std::move(block.error()));
  if (block->rows.empty()) return std::string();
  std::string lines = text_in(block->rows[0].at(0)).value_or("");
  if (lines.empty()) {
    auto read = append_parts(driver, session_id.str(), *turn.first_event_id, lines);
    if (!read) return std::unexpected(std::move(read.error()));
  }
  return opening_in(lines, turn);
}

Result<TurnPage> select_turns(SqlDriver& driver, const SessionId& session_id, std::int64_t after,
                              std::int64_t limit) {
  auto result = driver.execute(kTurnList, {session_id.str(), after, limit + 1});
  if (!result) return std::unexpected(std::move(result.error()));
  TurnPage page;
  std::size_t bytes = 0;
  for (const SqlRow& row : result->rows) {
    const bool is_full = std::cmp_greater_equal(page.turns.size(), limit);
    if (is_full || bytes > kTurnPageBytesMax) {
      page.next_after = page.turns.back().index;
      break;
    }
    TurnRecord turn = turn_from(row);
    auto opening = opening_of(driver, session_id, turn, text_in(row.at(15)));
    if (!opening) return std::unexpected(std::move(opening.error()));
    turn.opening = std::move(*opening);
    bytes += turn.opening.size();
    page.turns.push_back(std::move(turn));
  }
  return page;
}

}  // namespace

Async<TurnPage> JournalRows::turns(SessionId session_id, std::int64_t after, std::int64_t limit,
                                   Lane lane) const {
  return worker_.read<TurnPage>(std::move(lane),
                                [id = std::move(session_id), after, limit](SqlDriver& driver) {
                                  return select_turns(driver, id, after, limit);
                                });
}

Async<std::optional<std::int64_t>> JournalRows::open_turn_at(SessionId session_id, std::int64_t at,
                                                             Lane lane) const {
  using Found = std::optional<std::int64_t>;
  return worker_.read<Found>(
      std::move(lane), [id = std::move(session_id), at](SqlDriver& driver) -> Result<Found> {
        auto found = driver.execute(kOpenTurnAt, {id.str(), at});
        if (!found) return std::unexpected(std::move(found.error()));
        return found->rows.empty() ? Found() : whole_in(found->rows[0].at(0));
      });
}

}  // namespace clawdforge
