#include "api/native/session_answers.h"

#include "api/core/endpoint.h"
#include "api/core/failure_answer.h"
#include "api/core/json_body.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

void append_state(std::string& out, const SessionView& view) {
  const Session& session = view.session;
  out += R"({"session_id":)";
  append_json_string(out, session.id);
  append_member(out, "agent", session.agent);
  append_member(out, "model", unless_empty(session.model));
  append_member(out, "app_name", session.app);
  append_member(out, "created_at", session.created_at);
  append_member(out, "last_turn_at", session.last_turn_at);
  append_member(out, "closed_at", session.closed_at);
  append_member(out, "close_reason", unless_empty(session.close_reason));
  append_member(out, "turn_count", session.turn_count);
  append_member(out, "live", view.is_live);
  append_member(out, "busy", view.is_busy);
  append_name(out, "meta");
  out += object_or_empty(session.meta);
  append_member(out, "usage", session.usage);
  append_member(out, "cost_usd", session.cost_usd);
  out += '}';
}

}  // namespace

std::string_view object_or_empty(std::string_view json) {
  return is_json_object(json) ? json : "{}";
}

Response created_session(const Session& session) {
  std::string body = R"({"ok":true)";
  append_member(body, "session_id", session.id);
  append_member(body, "agent", session.agent);
  append_member(body, "model", unless_empty(session.model));
  append_member(body, "created_at", session.created_at);
  body += '}';
  return json_response(std::move(body));
}

Response session_state(const SessionView& view) {
  std::string body;
  append_state(body, view);
  return json_response(std::move(body));
}

Response session_list(SessionPage page, const Sessions& sessions) {
  std::string body = R"({"sessions":[)";
  for (Session& session : page.sessions) {
    if (body.back() != '[') body += ',';
    append_state(body, sessions.view_of(std::move(session)));
  }
  body += ']';
  append_member(body, "count", page.sessions.size());
  append_member(body, "next_cursor", page.next_cursor);
  body += '}';
  return json_response(std::move(body));
}

Response turn_answer(std::string_view session_id, TurnOutcome outcome,
                     std::string_view request_id) {
  std::string front = turn_json(session_id, outcome);
  front.pop_back();  // the closing brace
  if (outcome.failure) {
    append_member(front, "request_id", request_id);
    if (outcome.is_events_truncated) append_member(front, "events_truncated", true);
  }
  append_name(front, "events");
  std::string body = std::move(outcome.events);
  body.insert(0, front);  // within its buffer, if that has room
  body += '}';
  if (outcome.failure) return failure_response(*outcome.failure, std::move(body));
  return json_response(std::move(body));
}

Response file_list(const WorkListing& listing) {
  std::string body = R"({"files":[)";
  for (const WorkFile& file : listing.files) {
    body += body.back() == '[' ? R"({"path":)" : R"(,{"path":)";
    append_json_string(body, file.path);
    append_member(body, "size", file.size);
    append_member(body, "modified_at", file.modified_at);
    body += '}';
  }
  body += ']';
  append_member(body, "count", listing.files.size());
  append_member(body, "truncated", listing.is_truncated);
  body += '}';
  return json_response(std::move(body));
}

}  // namespace clawdforge
