#include "ledger/sessions/session_row.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ledger/core/columns.h"
#include "ledger/core/row_values.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

struct SessionColumn {
  std::string_view name;
  void (*read)(Session&, const SqlValue&) = nullptr;
  SqlValue (*added)(const Session&, const InstanceId&) = nullptr;  // written when it is made
  bool is_large = false;  // only a session's agent needs it
};

std::string text_or_empty(const SqlValue& value) { return text_in(value).value_or(""); }

std::int64_t count_in(const SqlValue& value) {
  return std::max<std::int64_t>(whole_in(value).value_or(0), 0);
}

template <std::int64_t Usage::* kTokens>
constexpr SessionColumn session_tokens(std::string_view name) {
  return {.name = name, .read = [](Session& session, const SqlValue& value) {
            session.usage.*kTokens = whole_in(value).value_or(0);
          }};
}

// The names of its members in the row.
struct WorkspaceMember {
  std::string_view name;
  std::string SessionWorkspace::* text;
};
constexpr WorkspaceMember kWorkspaceMembers[] = {{"name", &SessionWorkspace::name},
                                                 {"path", &SessionWorkspace::path},
                                                 {"repository", &SessionWorkspace::repository},
                                                 {"git_dir", &SessionWorkspace::git_dir},
                                                 {"branch", &SessionWorkspace::branch},
                                                 {"base", &SessionWorkspace::base}};

constexpr SessionColumn kSessionColumns[] = {
    {.name = "session_id",
     .read = [](Session& session, const SqlValue& value) { session.id = id_in<SessionId>(value); },
     .added = [](const Session& session, const InstanceId&) -> SqlValue {
       return session.id.str();
     }},
    {.name = "created_at",
     .read =
         [](Session& session, const SqlValue& value) {
           session.created_at = time_in(value).value_or(TimePoint());
         },
     .added = [](const Session& session, const InstanceId&) -> SqlValue {
       return unix_seconds(session.created_at);
     }},
    {.name = "app_name",
     .read = [](Session& session, const SqlValue& value) { session.app = id_in<AppName>(value); },
     .added = [](const Session& session, const InstanceId&) -> SqlValue {
       return session.app.str();
     }},
    {.name = "agent",
     .read = [](Session& session, const SqlValue& value) { session.agent = text_or_empty(value); },
     .added = [](const Session& session, const InstanceId&) -> SqlValue { return session.agent; }},
    {.name = "meta",
     .read = [](Session& session,
                const SqlValue& value) { session.meta = json_object_in(value).value_or("{}"); },
     .added = [](const Session& session, const InstanceId&) -> SqlValue { return session.meta; }},
    {.name = "last_turn_at",
     .read = [](Session& session,
                const SqlValue& value) { session.last_turn_at = time_in(value); }},
    {.name = "closed_at",
     .read =
         [](Session& session, const SqlValue& value) {
           if (std::holds_alternative<std::monostate>(value)) return;
           session.closed_at = time_in(value).value_or(TimePoint());
         }},
    {.name = "close_reason",
     .read = [](Session& session,
                const SqlValue& value) { session.close_reason = text_or_empty(value); }},
    {.name = "turn_count",
     .read = [](Session& session, const SqlValue& value) { session.turn_count = count_in(value); }},
    {.name = "last_event_id",
     .read = [](Session& session,
                const SqlValue& value) { session.last_event_id = count_in(value); }},
    session_tokens<&Usage::input_tokens>("input_tokens"),
    session_tokens<&Usage::output_tokens>("output_tokens"),
    session_tokens<&Usage::cache_read_tokens>("cache_read_tokens"),
    session_tokens<&Usage::cache_write_tokens>("cache_write_tokens"),
    {.name = "cost_usd",
     .read = [](Session& session, const SqlValue& value) { session.cost_usd = number_in(value); }},
    {.name = "agent_session_id",
     .read = [](Session& session,
                const SqlValue& value) { session.agent_session_id = text_or_empty(value); }},
    {.name = "model",
     .read = [](Session& session, const SqlValue& value) { session.model = text_or_empty(value); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.model); }},
    {.name = "system",
     .read = [](Session& session, const SqlValue& value) { session.system = text_or_empty(value); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.system); },
     .is_large = true},
    {.name = "system_mode",
     .read =
         [](Session& session, const SqlValue& value) {
           const bool is_replaced = text_or_empty(value) == kSystemReplaced;
           session.system_mode = is_replaced ? SystemMode::replace : SystemMode::append;
         },
     .added =
         [](const Session& session, const InstanceId&) {
           const bool is_replaced = session.system_mode == SystemMode::replace;
           return text_or_null(is_replaced ? std::string(kSystemReplaced) : std::string());
         }},
    {.name = "effort",
     .read = [](Session& session, const SqlValue& value) { session.effort = text_or_empty(value); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.effort); }},
    {.name = "mcp_servers",
     .read = [](Session& session,
                const SqlValue& value) { session.mcp_servers = json_array_in(value).value_or(""); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.mcp_servers); },
     .is_large = true},
    {.name = "permission_mode",
     .read =
         [](Session& session, const SqlValue& value) {
           session.permission_mode =
               permission_mode_from(text_or_empty(value)).value_or(PermissionMode::deny_all);
         },
     .added = [](const Session& session, const InstanceId&) -> SqlValue {
       return std::string(name_of(session.permission_mode));
     }},
    {.name = "workspace",
     .read = [](Session& session,
                const SqlValue& value) { session.workspace = workspace_in(text_or_empty(value)); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(workspace_text(session.workspace)); }},
    {.name = "forked_from",
     .read = [](Session& session,
                const SqlValue& value) { session.forked_from = id_in<SessionId>(value); },
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.forked_from.str()); }},
    {.name = "title",
     .read = [](Session& session, const SqlValue& value) { session.title = text_or_empty(value); }},
    {.name = "webhook",
     .added = [](const Session& session,
                 const InstanceId&) { return text_or_null(session.webhook); }},
    {.name = "instance_id",
     .added = [](const Session&, const InstanceId& instance_id) -> SqlValue {
       return instance_id.str();
     }},
};
static_assert(column_at(kSessionColumns, &SessionColumn::read, "session_id") == kSessionColumnId);
static_assert(column_at(kSessionColumns, &SessionColumn::read, "created_at") ==
              kSessionColumnCreatedAt);

}  // namespace

std::string workspace_text(const SessionWorkspace& workspace) {
  if (workspace == SessionWorkspace{}) return {};
  json::object object{{"mode", json::string(name_of(workspace.mode))}};
  for (const WorkspaceMember& member : kWorkspaceMembers) {
    const std::string& text = workspace.*member.text;
    if (!text.empty()) object.emplace(member.name, text);
  }
  return json::serialize(object);
}

SessionWorkspace workspace_in(std::string_view text) {
  SessionWorkspace workspace;
  boost::system::error_code error;
  const json::value parsed = json::parse({text.data(), text.size()}, error);
  const json::object* const object = error ? nullptr : parsed.if_object();
  const json::value* const mode = object == nullptr ? nullptr : object->if_contains("mode");
  const auto known = mode != nullptr && mode->is_string()
                         ? workspace_mode_from(std::string_view(mode->get_string()))
                         : std::nullopt;
  if (!known) return workspace;
  workspace.mode = *known;
  for (const WorkspaceMember& member : kWorkspaceMembers) {
    const json::value* const value = object->if_contains(member.name);
    if (value != nullptr && value->is_string()) workspace.*member.text = value->get_string();
  }
  return workspace;
}

std::string session_columns() { return column_names(kSessionColumns, &SessionColumn::read); }

std::string session_short_columns() {
  std::string names;
  for (const SessionColumn& column : kSessionColumns) {
    if (column.read == nullptr) continue;
    if (!names.empty()) names += ", ";
    names += column.is_large ? "''" : column.name;
  }
  return names;
}

Session session_from(const SqlRow& row) {
  Session session;
  read_columns(row, kSessionColumns, &SessionColumn::read, session);
  if (!session.closed_at) session.close_reason.clear();
  return session;
}

std::string session_insert() {
  return insert_into("sessions", kSessionColumns, &SessionColumn::added) +
         " ON CONFLICT (session_id) DO NOTHING";
}

SqlRow row_of(const Session& session, const InstanceId& instance_id) {
  return with_values({}, kSessionColumns, &SessionColumn::added, session, instance_id);
}

}  // namespace clawdforge
