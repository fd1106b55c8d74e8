#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/async_tokens.h"
#include "base/refusals.h"
#include "json/json_members.h"
#include "sessions/live_session.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kTurnRestartWait{5};
constexpr std::chrono::seconds kQueueWait{2};

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

std::string_view state_of(const TurnOutcome& outcome) {
  if (outcome.failure)
    return outcome.failure->cause == Cause::interrupted ? "interrupted" : "failed";
  return outcome.stop_reason == "cancelled" ? "cancelled" : "done";
}

AuditEvent audit_of(const TurnOutcome& outcome, std::string_view state, TimePoint at) {
  AuditEvent event{.event = state == "interrupted" ? "interrupted" : "turn", .at = at, .meta = {}};
  event.meta = "{";
  append_member(event.meta, "turn_index", outcome.turn_index);
  append_member(event.meta, "state", state);
  append_member(event.meta, "duration_ms", outcome.duration.count());
  append_member(event.meta, "stop_reason", outcome.stop_reason.value_or(""));
  if (outcome.failure) append_member(event.meta, "code", outcome.failure->code);
  event.meta += '}';
  return event;
}

}  // namespace

Task<void> LiveSession::work() {
  const auto self = shared_from_this();
  while (!waiting_.empty()) {
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    co_await run(running_);
    running_.reset();
    last_active_ = steady_clock::now();
  }
  if (is_ending()) end_agent();
  is_working_ = false;
  if (house_.places.waiting() > 0) house_.make_room();
  note_quiet();
}

Task<void> LiveSession::run(std::shared_ptr<LiveTurn> turn) {
  auto failure = co_await prepare(turn);
  if (!failure && turn->stop == TurnStop::none && agent_) {
    turn->is_begun = true;
    turn->give_up_at = steady_clock::now() + house_.options.first_sign_max;
    last_turn_ = turn->index;
    try {
      agent_->begin_turn(std::move(turn->request.prompt));
    } catch (const std::bad_alloc&) {
      failure = out_of_memory().error();
      end_agent();
    }
    if (!failure) {
      co_await await_end(turn);
    }
  }
  if (!turn->is_over()) {
    if (turn->stop != TurnStop::none) failure = failure_of(turn->stop, *turn);
    conclude(*turn, std::nullopt, std::move(failure));
  }
  co_await settle(turn);
}

// The agent runs, and the files are where it can read them.
Task<std::optional<Failure>> LiveSession::prepare(std::shared_ptr<LiveTurn> turn) {
  turn->has_place = agent_ != nullptr;
  if (!agent_) {
    auto failure = co_await start_agent(std::nullopt);
    if (failure) co_return failure;
    // An agent that has never been asked anything has nothing to forget.
    turn->is_resumed = is_loaded_ || turn->index == 1;
  }
  if (!turn->attachments.empty()) {
    const auto paths =
        co_await deps_.dirs.attach(session_.id, turn->index, std::move(turn->attachments));
    if (!paths) co_return paths.error();
    turn->request.prompt = with_paths(*paths, std::move(turn->request.prompt));
  }
  // That it has died may be known as soon as it is listened to.
  if (!agent_) {
    co_return fail(Errc::agent_failed, "agent_exited", "The agent ended before it was asked.")
        .error();
  }
  co_return std::nullopt;
}

// Until it is over, or nobody has the patience to wait for it any longer.
Task<void> LiveSession::await_end(std::shared_ptr<LiveTurn> turn) {
  while (!turn->is_over()) {
    turn->changed.expires_at(turn->give_up_at);
    co_await turn->changed.async_wait(kAwait);
    if (turn->is_over() || steady_clock::now() < turn->give_up_at) continue;
    if (turn->stop == TurnStop::none && turn->is_heard) {
      turn->give_up_at = steady_clock::time_point::max();
    } else if (turn->stop == TurnStop::none) {
      stop_turn(turn, TurnStop::silent);
    } else {
      if (agent_) turn->error_tail = agent_->error_tail();
      end_agent();
      break;
    }
  }
}

void LiveSession::conclude(LiveTurn& turn, std::optional<TurnEnd> end,
                           std::optional<Failure> failure) {
  if (agent_ && turn.is_begun && (failure || (end && end->failure))) {
    turn.error_tail = agent_->error_tail();
  }
  if (turn.is_begun) {
    questions_.cancel();
    ended_turn_ = turn.index;
  }
  const TurnOutcome& outcome = turn.conclude(std::move(end), std::move(failure));
  const std::string_view state = state_of(outcome);
  const TimePoint now = deps_.clock.now();
  journal_.append(turn.index, outcome.failure ? EventKind::failed : EventKind::done,
                  turn_json(session_.id, outcome));
  journal_.note(audit_of(outcome, state, now));
  TurnSettled settled{.index = turn.index,
                      .state = std::string(state),
                      .at = now,
                      .stop_reason = outcome.stop_reason,
                      .code = {},
                      .usage = outcome.usage,
                      .cost_usd = outcome.cost_usd};
  if (outcome.failure) settled.code = std::string(outcome.failure->code);
  if (outcome.cost_usd) session_.cost_usd = session_.cost_usd.value_or(0) + *outcome.cost_usd;
  journal_.settle_turn(std::move(settled));
  deps_.metrics
      .counter("clawdforge_turns_total", "Turns, by how they ended.",
               {{"state", std::string(state)}})
      .increment();
}

// Done means committed: whoever waits is told so, or that it is not.
Task<void> LiveSession::settle(std::shared_ptr<LiveTurn> turn) {
  const auto self = shared_from_this();
  const auto committed = co_await journal_.committed();
  if (committed) {
    turn->set_answer(turn->take_outcome());
  } else {
    turn->set_answer(std::unexpected(committed.error()));
  }
  note_quiet();
}

std::optional<Failure> LiveSession::failure_of(TurnStop reason, const LiveTurn& turn) const {
  switch (reason) {
    case TurnStop::none:
    case TurnStop::cancelled:
    case TurnStop::caller_gone:
      break;
    case TurnStop::timed_out:
      if (!turn.has_place) {
        return fail_for_now(Errc::unavailable, "queue_timeout",
                            "The turn's time ended while it waited; it is safe to try again.",
                            kQueueWait)
            .error();
      }
      return fail(Errc::timed_out, "timeout",
                  fmt::format("{} did not finish within {} seconds", session_.agent,
                              turn.request.timeout.count()))
          .error();
    case TurnStop::silent:
      return fail(Errc::timed_out, "agent_stalled",
                  fmt::format("{} said nothing within {} seconds", session_.agent,
                              house_.options.first_sign_max.count()))
          .error();
    case TurnStop::closed:
      return fail(Errc::gone, "session_closed", "The session was closed.").error();
    case TurnStop::shutdown:
      return Failure{.kind = Errc::unavailable,
                     .code = "interrupted",
                     .message = "The gateway is shutting down.",
                     .retry_after = kTurnRestartWait,
                     .cause = Cause::interrupted};
  }
  return std::nullopt;
}

}  // namespace clawdforge
