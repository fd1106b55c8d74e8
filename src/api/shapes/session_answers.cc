#include "api/shapes/session_answers.h"

#include "api/core/endpoint.h"
#include "api/core/failure_answer.h"
#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/shapes/session_state.h"
#include "json/json_check.h"
#include "json/json_members.h"
#include "json/json_parse.h"
#include "storage/work/work_files.h"
#include "transcript/journal_json.h"

namespace clawdforge {
namespace {

// What the turn was asked, as its `turn` event has it. The texts are copied as they stand there.
void append_opening(std::string& out, std::string_view opening) {
  const bool is_kept = is_json_object(opening, kJsonDepthMax);
  const std::string prompt = is_kept ? member_text(opening, "prompt") : std::string();
  const std::string files = is_kept ? member_text(opening, "files") : std::string();
  append_name(out, "prompt");
  out += prompt.empty() ? "null" : prompt;
  if (is_kept && member_text(opening, "prompt_truncated") == "true") {
    append_member(out, "prompt_truncated", true);
  }
  append_name(out, "files");
  out += files.empty() ? "[]" : files;
}

}  // namespace

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

Response turn_list(const TurnPage& page) {
  std::string body = R"({"turns":[)";
  for (const TurnRecord& turn : page.turns) {
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "turn_index", turn.index);
    append_member(body, "state", name_of(turn.state));
    append_member(body, "code", turn.code);
    append_member(body, "error", turn.error);
    append_member(body, "stop_reason", turn.stop_reason);
    append_member(body, "started_at", turn.started_at);
    append_member(body, "ended_at", turn.ended_at);
    append_member(body, "duration_ms", turn.duration_ms);
    append_member(body, "usage", turn.usage);
    append_member(body, "cost_usd", turn.cost_usd);
    append_member(body, "first_event_id", turn.first_event_id);
    append_member(body, "last_event_id", turn.last_event_id);
    append_opening(body, turn.opening);
    body += '}';
  }
  body += ']';
  append_member(body, "count", page.turns.size());
  append_member(body, "next_after", page.next_after);
  body += '}';
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
