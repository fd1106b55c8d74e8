// What a LiveSession does with what its agent says.
#include <utility>

#include "json/json_members.h"
#include "model/hooks/event_body.h"
#include "sessions/live/live_session.h"
#include "sessions/live/permissions.h"
#include "transcript/journal_json.h"

namespace clawdforge {

void LiveSession::on_news(AgentNews news) {
  last_heard_ = std::chrono::steady_clock::now();
  LiveTurn* const turn = turns_.asked();
  // An agent that has never been asked anything has nothing to forget.
  if (turn != nullptr && news.is_resumed) turn->is_resumed = *news.is_resumed || turn->index == 1;
  for (AgentEvent& event : news.events) {
    if (!take_event(std::move(event), news.is_early)) return;
  }
}

bool LiveSession::take_event(AgentEvent event, bool is_early) {
  const std::int64_t index = turns_.index_of(event, is_early);
  LiveTurn* const turn = is_early || event.is_late ? nullptr : turns_.asked();
  if (event.context) context_ = event.context;
  if (turn != nullptr) {
    turn->stage = TurnStage::heard;
    turn->collect(event);
  }
  if (event.question) {
    take_question(std::move(*event.question), event.json, index);
  } else {
    journal_.append(index, EventKind::update, std::move(event.json), std::move(event.memory));
  }
  if (turn == nullptr || !event.end) return true;
  // At once: what the agent says after it must come after it in the journal as well.
  const bool is_lost = event.end->has_lost_conversation;
  conclude(*turn, std::move(event.end), turn->stop_failure);
  if (is_lost) end_agent();
  return !is_lost;
}

void LiveSession::on_death(Failure why, bool has_lost_words) {
  if (has_lost_words && turns_.running()) turns_.running()->forget_events();
  if (LiveTurn* const turn = turns_.asked()) {
    std::optional<Failure> failure = std::move(why);
    if (turn->is_stopped()) failure = turn->stop_failure;
    conclude(*turn, std::nullopt, std::move(failure));
  }
  end_agent();
}

// Decided by the session's mode, or by an app that is asked. A question of a turn that is being
// stopped has been answered by the agent's own end of it.
void LiveSession::take_question(PermissionRequest question, std::string_view message,
                                std::int64_t turn_index) {
  const TimePoint now = deps_.clock.now();
  OpenQuestion open{.id = deps_.ids.uuid(),
                    .turn_index = turn_index,
                    .asked = std::move(question),
                    .asked_at = now,
                    .expires_at = now + questions_.expiry()};
  const bool is_stopping = turns_.running() && turns_.running()->is_stopped();
  const auto decision = open.asked.is_answered ? decided(open.asked)
                        : is_stopping          ? Decision{}
                                      : rule_for(seat_.terms().permission_mode, open.asked);
  std::optional<std::int64_t> expires_at;
  if (!decision) expires_at = unix_seconds(open.expires_at);
  journal_.append(
      turn_index, EventKind::permission,
      question_json(open.id, turn_index, unix_seconds(now), expires_at, open.asked, message));
  if (decision) {
    questions_.note_answered(open.id);
    resolve(open, *decision, is_stopping ? "cancel" : "rule");
  } else {
    tell_question(open);
    // A larger one is not read here: it would keep others waiting.
    open.is_tool_cut = message.size() > kToolBytesMax;
    if (!open.is_tool_cut) open.tool = tool_in(message);
    questions_.add(std::move(open));
  }
}

// Without the agent's own message, whose size is not limited.
void LiveSession::tell_question(const OpenQuestion& open) {
  constexpr std::string_view kType = "session.permission_asked";
  std::string data = "{";
  append_member(data, "session_id", session_.id.str());
  append_name(data, "permission");
  data += question_json(open.id, open.turn_index, unix_seconds(open.asked_at),
                        unix_seconds(open.expires_at), open.asked, {});
  data += '}';
  journal_.tell({.id = DeliveryId(deps_.ids.uuid()),
                 .type = std::string(kType),
                 .body = event_body(kType, open.asked_at, data),
                 .at = open.asked_at});
}

void LiveSession::resolve(const OpenQuestion& question, const Decision& decision,
                          std::string_view by) {
  journal_.append(question.turn_index, EventKind::permission_resolved,
                  resolution_json(question.id, name_of(decision), decision.option_id, by));
  journal_.note({.event = "permission",
                 .at = deps_.clock.now(),
                 .meta = audit_json(question.id, question.asked, decision, by,
                                    seat_.terms().permission_mode)});
  if (SessionAgent* const agent = seat_.agent()) {
    agent->answer(question.asked.ask_id, decision.option_id);
  }
}

}  // namespace clawdforge
