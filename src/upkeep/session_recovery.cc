#include "upkeep/session_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "transcript/journal_json.h"

namespace clawdforge {

namespace {

constexpr std::int64_t kLeftOverTurnsMax = 500;  // read in one step

// The closing event, the end of the turn's row and the line of the audit, in one write.
SessionWrite interruption_of(const UnfinishedTurn& turn, bool is_asked, TimePoint now) {
  TurnOutcome outcome;
  outcome.turn_index = turn.index;
  outcome.failure =
      fail(Errc::unavailable, "interrupted", "The gateway ended while the turn was under way.")
          .error();
  outcome.stop_reason = "error";
  outcome.duration = std::max(now - turn.started_at, std::chrono::milliseconds(0));
  const Event event{.id = turn.last_event_id + 1,
                    .turn_index = turn.index,
                    .kind = EventKind::failed,
                    .json = closing_json(turn.session_id, outcome),
                    .at = now,
                    .offset_ms = outcome.duration.count()};
  JournalBlock block{.first_event_id = event.id,
                     .last_event_id = event.id,
                     .turn_index = turn.index,
                     .at = now,
                     .lines = {}};
  append_event_line(block.lines, event);
  SessionWrite write;
  write.session_id = turn.session_id;
  write.app = turn.app;
  write.blocks.push_back(std::move(block));
  write.ends.push_back({.index = turn.index,
                        .state = TurnState::interrupted,
                        .at = now,
                        .stop_reason = outcome.stop_reason,
                        .code = "interrupted",
                        .usage = {},
                        .cost_usd = {},
                        .error = outcome.failure->message,
                        .agent_ms = is_asked ? std::optional<std::int64_t>(0) : std::nullopt,
                        .agent = turn.agent,
                        .model = turn.model,
                        .last_event_id = event.id,
                        .duration_ms = outcome.duration.count()});
  write.audit.push_back({.event = "interrupted",
                         .at = now,
                         .meta = fmt::format(R"({{"turn_index":{}}})", turn.index)});
  return write;
}

Async<std::int64_t> interrupt_turns(RecoveryDependencies deps) {
  std::int64_t turns = 0;
  std::map<SessionId, std::int64_t> newest;  // events of sessions with several such turns
  while (true) {
    const auto left = co_await deps.ledger.journal.unfinished_turns(kLeftOverTurnsMax);
    if (!left) co_return std::unexpected(left.error());
    if (left->empty()) co_return turns;
    for (UnfinishedTurn turn : *left) {
      // Turns run in their order: the others of the session still waited.
      const bool is_asked = !newest.contains(turn.session_id);
      std::int64_t& last = newest[turn.session_id];
      turn.last_event_id = std::max(turn.last_event_id, last);
      last = turn.last_event_id + 1;
      const auto written =
          co_await deps.ledger.journal.write(interruption_of(turn, is_asked, deps.clock.now()));
      if (!written) co_return std::unexpected(written.error());
      ++turns;
    }
  }
}

}  // namespace

Async<SessionsRecovered> recover_sessions(RecoveryDependencies deps) {
  const auto turns = co_await interrupt_turns(deps);
  if (!turns) co_return std::unexpected(turns.error());
  const auto never_made = co_await deps.ledger.sessions.adopt_left();
  if (!never_made) co_return std::unexpected(never_made.error());
  auto ids = co_await deps.ledger.sessions.all_ids();
  if (!ids) co_return std::unexpected(ids.error());
  const auto directories = co_await deps.session_dirs.keep_only(std::move(*ids));
  if (!directories) co_return std::unexpected(directories.error());
  co_return SessionsRecovered{
      .turns_interrupted = *turns, .never_made = *never_made, .directories = *directories};
}

}  // namespace clawdforge
