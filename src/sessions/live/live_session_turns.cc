// How a LiveSession goes through its turns: one after the other, each until its answer.
#include <algorithm>
#include <new>
#include <utility>

#include "agent/core/answer_schema.h"
#include "base/refusals.h"
#include "json/schema/json_schema.h"
#include "sessions/live/live_session.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

// The paths one a line, an empty line, the prompt as it is.
std::string with_paths(const std::vector<std::string>& paths, std::string prompt) {
  if (paths.empty()) return prompt;
  std::string text;
  for (const std::string& path : paths) {
    text += path;
    text += '\n';
  }
  text += '\n';
  text += prompt;
  return text;
}

}  // namespace

Task<void> LiveSession::work() {
  const auto alive = shared_from_this();
  while (const auto turn = turns_.run_next()) {
    co_await run(turn);
    turns_.end_run();
  }
  if (is_ending()) end_agent();
  end_work();
}

// The session is idle now, so its agent may sleep if another session needs the slot.
void LiveSession::end_work() {
  is_working_ = false;
  if (deps_.quota.agents_waiting() > 0) shared_.make_space();
  note_quiet();
}

Task<void> LiveSession::run(std::shared_ptr<LiveTurn> turn) {
  DirectTurns::Hold line = join_line();
  turn->waits_in_line = true;
  const bool is_first = co_await line.first([turn] { return turn->is_stopped(); });
  turn->waits_in_line = false;
  std::optional<Failure> failure;
  if (is_first) failure = co_await prepare(turn);
  if (auto& ticket = turn->ticket; !failure && ticket) failure = ticket->refused_since();
  if (!failure && !turn->is_stopped()) failure = ask(*turn);
  if (!failure && turn->is_asked()) co_await await_end(turn);
  if (!turn->is_over()) {
    if (turn->is_stopped()) failure = turn->stop_failure;
    conclude(*turn, std::nullopt, std::move(failure));
  }
  co_await settle(turn);
}

// The agent is ready, and the files are where it can read them.
Task<std::optional<Failure>> LiveSession::prepare(std::shared_ptr<LiveTurn> turn) {
  // That an agent has died since its last turn may not have been told yet.
  const bool must_start = seat_.agent() != nullptr &&
                          (seat_.terms() != terms_of(turn.get()) || seat_.agent()->is_ending());
  if (must_start) end_agent();
  if (!is_live()) {
    auto failure = co_await start_agent(std::nullopt);
    if (failure) co_return failure;
    // An agent that has never been asked anything has nothing to forget.
    turn->is_resumed = seat_.opened().is_loaded || turn->index == 1;
  }
  if (!turn->attachments.empty()) {
    const auto paths = co_await deps_.dirs.attach(session_.id.str(), turn->index,
                                                  std::move(turn->attachments), Lane(session_.app));
    if (!paths) co_return paths.error();
    turn->request.prompt = with_paths(*paths, std::move(turn->request.prompt));
  }
  if (turn->request.is_reserved) {
    const auto known = co_await journal_.committed(turn->start_mark);
    if (!known) co_return known.error();
  }
  if (turn->gate && !turn->is_stopped()) {
    const auto begun = co_await turn->gate->begin(
        {.turn_index = turn->index, .after_event = turn->first_event_id - 1});
    if (!begun) co_return begun.error();
    turn->request.received = steady_clock::now();
    start_deadline(turn);
  }
  // That it has died may be known as soon as it is listened to.
  if (!is_live()) {
    co_return Failure{.kind = Errc::agent_failed,
                      .code = "agent_exited",
                      .message = "The agent ended before it was asked.",
                      .cause = Cause::agent_exited};
  }
  co_return std::nullopt;
}

// Of the modes the stricter: the session's own, or what its app may have now.
AgentTerms LiveSession::terms_of(const LiveTurn* turn) const {
  if (turn == nullptr) return {.permission_mode = session_.permission_mode};
  AgentTerms terms{.permission_mode =
                       std::min(session_.permission_mode, turn->request.permission_mode_max)};
  const auto& schema = turn->request.schema;
  if (schema && has_schema_agent()) terms.schema = schema->text();
  return terms;
}

// Its agent takes the schema of an answer at its start.
bool LiveSession::has_schema_agent() const {
  const AgentSpec* const spec = deps_.catalog.find(session_.agent);
  return spec != nullptr && takes_schema(*spec);
}

Task<std::optional<Failure>> LiveSession::start_agent(std::optional<SessionCreated> created) {
  const std::shared_ptr<LiveTurn> turn = turns_.running();
  const bool is_unasked = (!turn || turn->index == 1) && session_.forked_from.empty();
  auto refused = co_await seat_.start(terms_of(turn.get()), is_unasked, created);
  if (refused && refused->cause == Cause::conversation_gone) {
    // An agent that is told at its start what to load cannot begin another conversation: another
    // process does.
    session_.agent_session_id.clear();
    session_.forked_from = {};
    refused = co_await seat_.start(terms_of(turn.get()), is_unasked, std::move(created));
  }
  if (!seat_.opened().agent_session_id.empty()) {
    session_.agent_session_id = seat_.opened().agent_session_id;
  }
  if (refused) {
    if (turn) turn->error_tail = refused->error_tail;
    co_return refused;
  }
  turns_.note_new_agent();
  co_return std::nullopt;
}

std::optional<Failure> LiveSession::ask(LiveTurn& turn) {
  turns_.note_asked(turn);
  turn.give_up_at = steady_clock::now() + shared_.options.first_sign_max;
  try {
    if (const auto& schema = turn.request.schema; schema && !has_schema_agent()) {
      turn.request.prompt = with_schema(turn.request.prompt, schema->text());
    }
    seat_.agent()->begin_turn(std::move(turn.request.prompt));
  } catch (const std::bad_alloc&) {
    end_agent();
    return out_of_memory().error();
  }
  return std::nullopt;
}

// Until the turn is over, or the time to wait for it is.
Task<void> LiveSession::await_end(std::shared_ptr<LiveTurn> turn) {
  while (!turn->is_over()) {
    co_await turn->changed.wait_until(turn->give_up_at);
    if (turn->is_over() || steady_clock::now() < turn->give_up_at) continue;
    if (turn->is_stopped()) {
      if (const SessionAgent* const agent = seat_.agent()) turn->error_tail = agent->error_tail();
      end_agent();
      break;
    }
    if (turn->stage == TurnStage::heard) {
      turn->give_up_at = steady_clock::time_point::max();
    } else {
      stop_turn(*turn, TurnStop::silent);
    }
  }
}

void LiveSession::conclude(LiveTurn& turn, std::optional<TurnEnd> end,
                           std::optional<Failure> failure) {
  if (turn.is_asked()) {
    const SessionAgent* const agent = seat_.agent();
    if (agent != nullptr && (failure || (end && end->failure))) {
      turn.error_tail = agent->error_tail();
    }
    questions_.cancel();
  }
  turns_.conclude(turn, std::move(end), std::move(failure));
}

Task<void> LiveSession::settle(std::shared_ptr<LiveTurn> turn) {
  const auto alive = shared_from_this();
  co_await turns_.settle(std::move(turn));
  note_quiet();
}

void LiveSession::on_deadline(const std::shared_ptr<LiveTurn>& turn) {
  if (turn == turns_.running()) {
    stop_turn(*turn, TurnStop::timed_out);
  } else {
    drop(turn, TurnStop::timed_out);
  }
}

// The first reason to stop a turn stays. A closed session waits no longer for its agent: it is
// not needed again.
void LiveSession::stop_turn(LiveTurn& turn, TurnStop reason) {
  const bool is_closing = reason == TurnStop::closed;
  if (turn.is_over() || (turn.is_stopped() && !is_closing)) return;
  if (!turn.is_stopped()) {
    turn.stop = reason;
    turn.stop_failure = turns_.failure_of(reason, turn, seat_.has_slot() && !turn.waits_in_line);
  }
  if (!turn.is_asked()) {
    if (turn.waits_in_line && deps_.workspaces != nullptr) deps_.workspaces->direct().nudge();
    seat_.interrupt();
    return;
  }
  questions_.cancel();
  if (SessionAgent* const agent = seat_.agent(); agent != nullptr && !is_closing) agent->cancel();
  turn.give_up_at =
      steady_clock::now() + (is_closing ? steady_clock::duration{} : shared_.options.cancel_grace);
  turn.changed.notify_all();
}

// False: it does not wait.
bool LiveSession::drop(std::shared_ptr<LiveTurn> turn, TurnStop reason) {
  if (!turns_.drop(turn, reason)) return false;
  shared_.tasks.spawn(settle(std::move(turn)));
  return true;
}

}  // namespace clawdforge
