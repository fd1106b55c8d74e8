// The agent behind a session: how it is started, listened to and let go.
#include <cassert>
#include <new>
#include <utility>

#include "base/async_tokens.h"
#include "base/refusals.h"
#include "sessions/live_session.h"
#include "sessions/permissions.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

Failure never_started() {
  return fail_for_now(Errc::unavailable, "queue_timeout",
                      "No place for another agent became free in time; it is safe to try again.",
                      std::chrono::seconds(2))
      .error();
}

}  // namespace

Task<std::optional<Failure>> LiveSession::start(AuditEvent created) {
  const auto self = shared_from_this();
  is_working_ = true;  // a turn that comes meanwhile waits: the row can be seen already
  auto failure = co_await start_agent(std::move(created));
  if (!failure && !waiting_.empty() && !is_ending()) {
    house_.tasks.spawn(work());
  } else {
    is_working_ = false;
    if (house_.places.waiting() > 0) house_.make_room();
  }
  note_quiet();
  co_return failure;
}

void LiveSession::interrupt() {
  if (!is_starting_) return;
  is_interrupted_ = true;
  quiet_.cancel();
  if (place_) place_->withdraw();
  if (opening_ != nullptr) opening_->stop();
}

// A place, a directory, a process, a conversation, a note of it in the row.
Task<std::optional<Failure>> LiveSession::start_agent(std::optional<AuditEvent> created) {
  assert(!is_starting_ && !agent_);
  const auto self = shared_from_this();
  is_starting_ = true;
  is_interrupted_ = false;
  // Two processes must not work on one conversation, and in one directory.
  while (leaving_ > 0 && !is_interrupted_) co_await quiet_.async_wait(kAwait);
  auto failure = co_await take_place();
  std::shared_ptr<SessionAgent> agent;
  if (!failure) {
    auto dir = co_await deps_.dirs.make(session_.id);
    const AgentSpec* const spec = deps_.agents.find(session_.agent);
    if (!dir) {
      failure = dir.error();
    } else if (spec == nullptr) {
      failure = fail(Errc::unavailable, "agent_not_found",
                     "The session's agent is not configured any more.")
                    .error();
    } else if (is_interrupted_) {
      failure = never_started();
    } else {
      auto started = deps_.agents.start(*spec, dir->work, dir->temp);
      if (started) {
        agent = std::move(*started);
      } else {
        failure = started.error();
      }
    }
  }
  if (agent) {
    failure = co_await open_agent(std::move(created), std::move(agent));
  }
  is_starting_ = false;
  if (failure) place_.reset();
  co_return failure;
}

Task<std::optional<Failure>> LiveSession::take_place() {
  auto entered = house_.places.enter(session_.app, std::nullopt);
  if (!entered) co_return entered.error();
  place_ = std::move(*entered);
  if (!place_->is_granted()) house_.make_room();
  co_await place_->settled();
  if (place_->is_displaced()) co_return Pool::full().error();
  if (!place_->is_granted()) co_return never_started();
  if (running_) running_->has_place = true;
  co_return std::nullopt;
}

Task<std::optional<Failure>> LiveSession::open_agent(std::optional<AuditEvent> created,
                                                     std::shared_ptr<SessionAgent> agent) {
  const SessionDir dir = deps_.dirs.of(session_.id);
  opening_ = agent.get();
  Conversation conversation{.name = session_.id,
                            .working_dir = dir.work,
                            .temp_dir = dir.temp,
                            .agent_session_id = session_.agent_session_id,
                            .is_unasked = !running_ || running_->index == 1,
                            .model = session_.model,
                            .system = session_.system,
                            .effort = session_.effort,
                            .mcp_servers = session_.mcp_servers,
                            .permission_mode = session_.permission_mode,
                            .cost_usd_so_far = session_.cost_usd.value_or(0)};
  Opening opened = std::unexpected(out_of_memory().error());
  try {
    opened = co_await agent->open(std::move(conversation));
  } catch (const std::bad_alloc&) {
    agent->stop();
  }
  opening_ = nullptr;
  std::optional<Failure> failure;
  if (!opened) {
    failure = opened.error();
    if (running_) running_->error_tail = agent->error_tail();
  } else {
    session_.agent_session_id = opened->agent_session_id;
    const auto noted =
        co_await deps_.ledger.note_agent(session_.id, opened->agent_session_id, agent->mark(),
                                         deps_.instance_id, std::move(created));
    if (!noted) failure = noted.error();
  }
  if (!failure && (is_interrupted_ || is_ending())) failure = never_started();
  if (failure) {
    ++leaving_;
    house_.tasks.spawn(await_exit(std::move(agent), std::move(place_)));
    co_return failure;
  }
  is_loaded_ = opened->is_loaded;
  can_load_ = opened->can_load;
  last_turn_ = 0;
  last_active_ = steady_clock::now();
  agent_ = std::move(agent);
  house_.tasks.spawn(listen(agent_));
  co_return std::nullopt;
}

// For as long as the agent lives, also between turns: it may say something at any time, and
// that it has died is worth knowing at once.
Task<void> LiveSession::listen(std::shared_ptr<SessionAgent> agent) {
  const auto self = shared_from_this();
  std::optional<Failure> death;
  while (!death) {
    try {
      AgentNews news = co_await agent->next();
      house_.lines_skipped.increment(static_cast<std::int64_t>(news.skipped_lines));
      if (agent == agent_ && news.is_resumed && running_ && running_->is_begun) {
        // An agent that has never been asked anything has nothing to forget.
        running_->is_resumed = *news.is_resumed || running_->index == 1;
      }
      if (agent == agent_) on_events(std::move(news.events), news.is_early);
      death = std::move(news.death);
    } catch (const std::bad_alloc&) {
      // What it has said is lost, so it cannot go on as if nothing were missing.
      if (running_) running_->forget_events();
      death = out_of_memory().error();
      break;
    }
    co_await journal_.room();
  }
  if (agent != agent_) co_return;
  if (running_ && running_->is_begun && !running_->is_over()) {
    if (running_->stop != TurnStop::none) death = failure_of(running_->stop, *running_);
    conclude(*running_, std::nullopt, std::move(death));
  }
  end_agent();
}

void LiveSession::on_events(std::vector<AgentEvent> events, bool is_early) {
  for (AgentEvent& event : events) {
    std::int64_t index = is_early ? 0 : index_of_what_is_said();
    if (event.is_late) index = ended_turn_;
    const bool is_of_turn =
        running_ && running_->is_begun && !running_->is_over() && !is_early && !event.is_late;
    LiveTurn* const turn = is_of_turn ? running_.get() : nullptr;
    if (turn != nullptr) {
      turn->is_heard = true;
      turn->collect(event);
    }
    if (event.question) {
      take_question(std::move(*event.question), event.json, index);
    } else {
      journal_.append(index, EventKind::update, std::move(event.json));
    }
    if (turn == nullptr || !event.end) continue;
    // At once: what the agent says after it must come after it in the journal as well.
    std::optional<Failure> failure;
    if (turn->stop != TurnStop::none) failure = failure_of(turn->stop, *turn);
    const bool is_lost = event.end->has_lost_conversation;
    conclude(*turn, std::move(event.end), std::move(failure));
    last_active_ = steady_clock::now();
    if (is_lost) {
      end_agent();
      return;
    }
  }
}

std::int64_t LiveSession::index_of_what_is_said() const {
  if (running_ && running_->is_begun && !running_->is_over()) return running_->index;
  const bool is_late = steady_clock::now() - last_active_ < kLateMax;
  return is_late ? last_turn_ : 0;
}

// By the session's mode, or by whoever is asked. A question of a turn that is being stopped
// has been answered by the agent's own end of it.
void LiveSession::take_question(PermissionRequest question, std::string_view message,
                                std::int64_t turn_index) {
  const TimePoint now = deps_.clock.now();
  OpenQuestion open{.id = deps_.ids.uuid(),
                    .turn_index = turn_index,
                    .asked = std::move(question),
                    .asked_at = now,
                    .expires_at = now + questions_.expiry()};
  const bool is_stopping = running_ && running_->stop != TurnStop::none;
  const auto decision = open.asked.is_answered ? decided(open.asked)
                        : is_stopping          ? Decision{}
                                               : rule_for(session_.permission_mode, open.asked);
  std::optional<std::int64_t> expires_at;
  if (!decision) expires_at = unix_seconds(open.expires_at);
  std::string json = question_json(open.id, turn_index, unix_seconds(now), expires_at, open.asked);
  json += R"(,"message":)";
  json += message;
  json += '}';
  journal_.append(turn_index, EventKind::permission, std::move(json));
  if (decision) {
    questions_.note_answered(open.id);
    resolve(open, *decision, is_stopping ? "cancel" : "rule");
  } else {
    questions_.add(std::move(open));
  }
}

void LiveSession::resolve(const OpenQuestion& question, const Decision& decision,
                          std::string_view by) {
  journal_.append(question.turn_index, EventKind::permission_resolved,
                  resolution_json(question.id, decision, by));
  journal_.note(
      {.event = "permission",
       .at = deps_.clock.now(),
       .meta = audit_json(question.id, question.asked, decision, by, session_.permission_mode)});
  if (agent_) agent_->answer(question.asked.ask_id, decision.option_id);
}

void LiveSession::end_agent() {
  if (!agent_) return;
  questions_.cancel();
  ++leaving_;
  house_.tasks.spawn(await_exit(std::exchange(agent_, nullptr), std::move(place_)));
}

Task<void> LiveSession::await_exit(std::shared_ptr<SessionAgent> agent,
                                   std::unique_ptr<Slot> place) {
  const auto self = shared_from_this();
  co_await agent->finish(ending_ == TurnStop::closed);
  agent.reset();
  place.reset();
  --leaving_;
  quiet_.cancel();
  // A closed row has no mark any more, and the mark of a new process stays.
  if (ending_ != TurnStop::closed && !agent_ && !is_starting_) {
    const auto forgotten = co_await deps_.ledger.forget_process(session_.id);
    if (!forgotten) {
      deps_.log.warn("the mark of a process that has ended is still in the ledger",
                     {{"session", std::string_view(session_.id)},
                      {"why", std::string_view(forgotten.error().detail)}});
    }
  }
  note_quiet();
}

}  // namespace clawdforge
