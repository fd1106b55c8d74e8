#include "api/shapes/session_state.h"

#include <boost/json.hpp>

#include "api/core/endpoint.h"
#include "json/json_check.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {

std::string_view object_or_empty(std::string_view json) {
  return is_json_object(json, kJsonDepthMax) ? json : "{}";
}

std::optional<std::string> title_in(std::string_view meta) {
  const auto parsed = parse_json(meta, kJsonDepthMax);
  const boost::json::object* const object = parsed ? parsed->if_object() : nullptr;
  const boost::json::value* const title =
      object == nullptr ? nullptr : object->if_contains("title");
  if (title == nullptr || !title->is_string()) return std::nullopt;
  return std::string(title->get_string());
}

namespace {

// What the app calls it, else the first line of its first prompt.
void append_title(std::string& out, const Session& session) {
  const auto given = title_in(session.meta);
  append_member(out, "title", unless_empty(given ? std::string_view(*given) : session.title));
}

void append_context(std::string& out, const std::optional<ContextUse>& context) {
  append_name(out, "context");
  if (!context) {
    out += "null";
    return;
  }
  out += '{';
  append_member(out, "used", context->used);
  append_member(out, "size", context->size);
  out += '}';
}

}  // namespace

void append_session_state(std::string& out, const SessionView& view) {
  const Session& session = view.session;
  out += R"({"session_id":)";
  append_json_string(out, session.id.str());
  append_member(out, "agent", session.agent);
  append_member(out, "model", unless_empty(session.model));
  append_member(out, "app_name", session.app.str());
  append_member(out, "created_at", session.created_at);
  append_member(out, "last_turn_at", session.last_turn_at);
  append_member(out, "closed_at", session.closed_at);
  append_member(out, "close_reason", unless_empty(session.close_reason));
  append_member(out, "turn_count", session.turn_count);
  append_member(out, "last_event_id", session.last_event_id);
  append_member(out, "live", view.is_live);
  append_member(out, "busy", view.is_busy);
  append_name(out, "meta");
  out += object_or_empty(session.meta);
  append_member(out, "usage", session.usage);
  append_member(out, "cost_usd", session.cost_usd);
  append_title(out, session);
  append_member(out, "permission_mode", name_of(session.permission_mode));
  append_member(out, "effort", unless_empty(session.effort));
  append_member(out, "turns_waiting", view.turns_waiting);
  append_member(out, "questions_open", view.questions_open);
  append_member(out, "turn_started_at", view.turn_started_at);
  append_context(out, view.context);
  append_member(out, "agent_version", unless_empty(view.agent_version));
  append_member(out, "delete_at", view.delete_at);
  append_workspace(out, session.workspace);
  if (const auto bytes = view.memory_bytes) {
    append_member(out, "memory_bytes", static_cast<std::int64_t>(*bytes));
  }
  out += '}';
}

void append_workspace(std::string& out, const SessionWorkspace& workspace) {
  if (workspace.name.empty()) return;
  append_member(out, "workspace", workspace.name);
  append_member(out, "workspace_mode", name_of(workspace.mode));
  if (!workspace.branch.empty()) append_member(out, "branch", workspace.branch);
}

Response session_list(std::vector<Session> sessions, const std::optional<std::string>& next_cursor,
                      const std::function<SessionView(Session)>& view_of) {
  std::string body = R"({"sessions":[)";
  for (Session& session : sessions) {
    if (body.back() != '[') body += ',';
    append_session_state(body, view_of(std::move(session)));
  }
  body += ']';
  append_member(body, "count", sessions.size());
  append_member(body, "next_cursor", next_cursor);
  body += '}';
  return json_response(std::move(body));
}

}  // namespace clawdforge
