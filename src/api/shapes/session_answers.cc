#include "api/shapes/session_answers.h"

#include "api/core/endpoint.h"
#include "api/core/failure_answer.h"
#include "api/core/problem.h"
#include "api/shapes/session_state.h"
#include "json/json_members.h"
#include "storage/work/work_files.h"
#include "transcript/journal_json.h"

namespace clawdforge {
Response created_session(const Session& session) {
  std::string body = R"({"ok":true)";
  append_member(body, "session_id", session.id.str());
  append_member(body, "agent", session.agent);
  append_member(body, "model", unless_empty(session.model));
  append_member(body, "created_at", session.created_at);
  append_workspace(body, session.workspace);
  body += '}';
  return json_response(std::move(body));
}

Response uncreated_session(const Failure& why, std::string_view request_id) {
  Response response = problem(why, request_id);
  if (why.error_tail.empty()) return response;
  response.body.pop_back();  // the closing brace
  append_member(response.body, "stderr", why.error_tail);
  response.body += '}';
  return response;
}

Response session_state(const SessionView& view) {
  std::string body;
  append_session_state(body, view);
  return json_response(std::move(body));
}

Response turn_answer(const SessionId& session_id, const TurnOutcome& outcome, std::string events,
                     std::string_view request_id) {
  std::string front = closing_json(session_id, outcome);
  front.pop_back();  // the closing brace
  if (outcome.failure) {
    append_member(front, "request_id", request_id);
    if (outcome.is_events_truncated) append_member(front, "events_truncated", true);
  }
  append_name(front, "events");
  std::string body = std::move(events);
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
