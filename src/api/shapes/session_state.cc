#include "api/shapes/session_state.h"

#include "api/core/endpoint.h"
#include "json/json_check.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {

std::string_view object_or_empty(std::string_view json) {
  return is_json_object(json, kJsonDepthMax) ? json : "{}";
}

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
  append_member(out, "live", view.is_live);
  append_member(out, "busy", view.is_busy);
  append_name(out, "meta");
  out += object_or_empty(session.meta);
  append_member(out, "usage", session.usage);
  append_member(out, "cost_usd", session.cost_usd);
  append_workspace(out, session.workspace);
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
