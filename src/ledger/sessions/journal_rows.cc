#include "ledger/sessions/journal_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/sessions/journal_parts.h"

namespace clawdforge {
namespace {

constexpr std::string_view kUnfinishedTurns =
    "SELECT turns.session_id, sessions.app_name, turns.turn_index, sessions.last_event_id, "
    "turns.started_at, sessions.agent, sessions.model "
    "FROM turns JOIN sessions ON sessions.session_id = turns.session_id "
    "WHERE turns.ended_at IS NULL AND (turns.instance_id IS NULL OR turns.instance_id <> $1) "
    "AND {} AND {} AND turns.turn_index BETWEEN 0 AND 9223372036854775807 "
    "ORDER BY turns.started_at, turns.turn_index LIMIT $2";

// A page of the journal: blocks until their sizes come to $4, and at least one. The block that
// holds $2 + 1 may begin before it. A size that cannot be counts as a large one.
constexpr std::string_view kJournalPage =
    "SELECT block.first_event_id, block.last_event_id, block.turn_index, block.at, block.events, "
    "block.bytes "
    "FROM (SELECT first_event_id, ROW_NUMBER() OVER (ORDER BY first_event_id) AS place, "
    "SUM(CASE WHEN bytes BETWEEN 0 AND 1073741824 THEN bytes ELSE 1073741824 END) "
    "OVER (ORDER BY first_event_id) AS upto FROM "
    "(SELECT first_event_id, bytes FROM journal WHERE session_id = $1 AND first_event_id >= "
    "COALESCE((SELECT MAX(first_event_id) FROM journal WHERE session_id = $1 AND "
    "first_event_id <= CAST($2 AS BIGINT) + 1), 0) AND last_event_id > $2 "
    "ORDER BY first_event_id LIMIT $3) AS head) AS size "
    "JOIN journal AS block ON block.session_id = $1 AND block.first_event_id = size.first_event_id "
    "WHERE size.place = 1 OR size.upto <= $4 ORDER BY block.first_event_id";
constexpr std::int64_t kJournalPageRowsMax = 256;

Result<std::vector<JournalBlock>> select_blocks(SqlDriver& driver, const SessionId& session_id,
                                                std::int64_t after, std::size_t bytes_max) {
  auto result = driver.execute(kJournalPage, {session_id.str(), after, kJournalPageRowsMax,
                                              static_cast<std::int64_t>(bytes_max)});
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<JournalBlock> blocks;
  for (SqlRow& row : result->rows) {
    const auto first = whole_in(row.at(0));
    const auto final = whole_in(row.at(1));
    if (!first || !final || *final < *first) continue;
    auto* const lines = std::get_if<std::string>(&row.at(4));
    JournalBlock& block =
        blocks.emplace_back(JournalBlock{.first_event_id = *first,
                                         .last_event_id = *final,
                                         .turn_index = whole_in(row.at(2)).value_or(0),
                                         .at = time_in(row.at(3)).value_or(TimePoint()),
                                         .lines = {}});
    if (lines != nullptr) block.lines = std::move(*lines);
    if (!block.lines.empty() || whole_in(row.at(5)).value_or(0) <= 0) continue;
    if (auto read = append_parts(driver, session_id.str(), *first, block.lines); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
  return blocks;
}

Result<std::vector<UnfinishedTurn>> select_unfinished(SqlDriver& driver,
                                                      const InstanceId& instance_id,
                                                      std::int64_t limit) {
  static const std::string kUnfinished =
      fmt::format(kUnfinishedTurns, owner_has_ended("turns"), may_be_written_by("sessions", "$1"));
  auto result = driver.execute(kUnfinished, {instance_id.str(), limit});
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<UnfinishedTurn> turns;
  for (const SqlRow& row : result->rows) {
    const auto index = whole_in(row.at(2));
    if (!index) continue;
    turns.push_back({.session_id = id_in<SessionId>(row.at(0)),
                     .app = id_in<AppName>(row.at(1)),
                     .agent = text_in(row.at(5)).value_or(""),
                     .model = text_in(row.at(6)).value_or(""),
                     .index = *index,
                     .last_event_id = std::max<std::int64_t>(whole_in(row.at(3)).value_or(0), 0),
                     .started_at = time_in(row.at(4)).value_or(TimePoint())});
  }
  return turns;
}

}  // namespace

Async<std::vector<JournalBlock>> JournalRows::page(SessionId session_id, std::int64_t after,
                                                   std::size_t bytes_max, Lane lane) const {
  return worker_.read<std::vector<JournalBlock>>(
      std::move(lane), [id = std::move(session_id), after, bytes_max](SqlDriver& driver) {
        return select_blocks(driver, id, after, bytes_max);
      });
}

Async<std::vector<UnfinishedTurn>> JournalRows::unfinished_turns(std::int64_t limit) const {
  return worker_.call<std::vector<UnfinishedTurn>>(
      Lane(), Access::read,
      [self = self_, limit](SqlDriver& driver) { return select_unfinished(driver, self, limit); });
}

}  // namespace clawdforge
