#include "api/native/session_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/query.h"
#include "api/native/prompt_fields.h"
#include "http/message/accepted.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::size_t kMetaBytesMax = 16 * 1024;
constexpr std::size_t kMcpServersBytesMax = 64 * 1024;
constexpr std::size_t kSessionSystemBytesMax = 1024 * 1024;  // it is read again for every turn
constexpr std::int64_t kSessionPageMax = 1'000;
constexpr std::size_t kWebhookEventsMax = 8;  // names in one list

const json::value* present(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains({name.data(), name.size()});
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool is_text(const json::value* value) {
  return value != nullptr && value->is_string() && !value->get_string().empty();
}

// The protocol asks for these lists, also where there is nothing to list.
bool complete_list(json::object& server, std::string_view name) {
  const json::value* const list = present(server, name);
  if (list == nullptr) server[{name.data(), name.size()}] = json::array();
  return list == nullptr || list->is_array();
}

// A text is the name of a server of the owner's.
bool complete_server(json::value& item) {
  if (item.is_string()) return is_text(&item);
  json::object* const server = item.if_object();
  if (server == nullptr || !is_text(present(*server, "name"))) return false;
  const json::value* const type = present(*server, "type");
  if (type == nullptr) {
    return is_text(present(*server, "command")) && complete_list(*server, "args") &&
           complete_list(*server, "env");
  }
  return (*type == "http" || *type == "sse") && is_text(present(*server, "url")) &&
         complete_list(*server, "headers");
}

std::string mcp_servers_of(Fields& fields) {
  const json::array* const given = fields.array("mcp_servers");
  if (given == nullptr) return {};
  json::array servers = *given;
  if (!std::ranges::all_of(servers, complete_server)) {
    fields.wrong("mcp_servers",
                 "must be a list; each item is the name of a server of the gateway's owner, or an "
                 "object with name and either command (and lists args and env) or type http or "
                 "sse with url (and a list headers)");
    return {};
  }
  std::string text = json::serialize(servers);
  if (text.size() > kMcpServersBytesMax) {
    fields.wrong("mcp_servers", fmt::format("must have at most {} bytes", kMcpServersBytesMax));
  }
  return text;
}

// What it means is the app's own affair, so it is kept as it was written: a number that
// does not fit into ours must not change.
std::string meta_of(Fields& fields, std::string_view body) {
  if (fields.object("meta") == nullptr) return "{}";
  std::string meta = member_text(body, "meta");
  if (meta.size() > kMetaBytesMax) {
    fields.wrong("meta", fmt::format("must have at most {} bytes", kMetaBytesMax));
  }
  return meta;
}

// Which events there are for it has to be said, so that another kind can come later.
std::string webhook_of(Fields& fields) {
  std::string webhook = fields.text("webhook").value_or("");
  const auto events = fields.texts("webhook_events", kWebhookEventsMax);
  if (events &&
      std::ranges::any_of(*events, [](const auto& name) { return name != "permission"; })) {
    fields.wrong("webhook_events", "must be a list of: permission");
  }
  if (webhook.empty() && events && !events->empty()) {
    fields.wrong("webhook", "is required with webhook_events");
  }
  if (!webhook.empty() && (!events || events->empty())) {
    fields.wrong("webhook_events", "is required with webhook: [\"permission\"]");
  }
  return webhook;
}

EventFormat event_format_of(Fields& fields, const std::optional<std::string>& name,
                            EventFormat otherwise) {
  if (!name) return otherwise;
  const auto format = event_format_from(*name);
  if (!format) fields.wrong("event_format", "must be acp or simple");
  return format.value_or(otherwise);
}

}  // namespace

bool is_session_id(std::string_view text) { return is_identifier(text); }

Result<SessionRequest> parse_session(std::string_view body, std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  SessionRequest session;
  session.workspace = fields.text("workspace").value_or("");
  session.from = fields.text("from").value_or("");
  if (!session.from.empty() && !is_identifier(session.from)) {
    fields.wrong("from", "is not the id of a session");
  }
  if (!session.from.empty() && !session.workspace.empty()) {
    fields.wrong("workspace", "is that of the session in from");
  }
  const bool is_fork = !session.from.empty();
  session.agent = fields.text("agent").value_or(is_fork ? "" : "claude");
  if (!is_fork || !session.agent.empty()) check_agent_name(fields, session.agent);
  session.meta = meta_of(fields, body);
  session.model = model_of(fields);
  session.system = system_of(fields);
  if (session.system.size() > kSessionSystemBytesMax) {
    fields.wrong("system", fmt::format("must have at most {} bytes", kSessionSystemBytesMax));
  }
  session.system_mode = system_mode_of(fields);
  session.effort = effort_of(fields);
  session.mcp_servers = mcp_servers_of(fields);
  session.permission_mode = permission_mode_of(fields);
  session.webhook = webhook_of(fields);
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  return session;
}

Result<ParsedTurn> parse_turn(std::string_view body, bool accepts_stream,
                              const SessionDefaults& defaults, std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  ParsedTurn parsed;
  TurnRequest& turn = parsed.turn;
  turn.prompt = prompt_of(fields);
  turn.files = files_of(fields);
  Result<void> schema_refusal;
  turn.schema = schema_of(fields, schema_refusal);
  turn.timeout = timeout_of(fields, defaults.timeout, defaults.timeout_max);
  const std::optional<std::string> format = fields.text("event_format");
  parsed.format = event_format_of(fields, format, defaults.event_format);
  const auto wait = fields.boolean("wait");
  parsed.turn.waits = wait.value_or(false);
  parsed.turn.waits_for_workspace = wait.value_or(true);
  parsed.is_streamed = fields.boolean("stream").value_or(accepts_stream);
  parsed.is_simple_stream = format == "simple";
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  if (!schema_refusal) return std::unexpected(std::move(schema_refusal.error()));
  return parsed;
}

bool accepts_event_stream(const Request& request) {
  return accepts_type(request.header("Accept").value_or(""), "text/event-stream");
}

Result<SessionFilter> parse_session_list(std::string_view query, AppName app) {
  Query parameters(query);
  SessionFilter filter;
  filter.audit.app = std::move(app);
  filter.audit.limit = parameters.integer("limit", 1, kSessionPageMax).value_or(kSessionPageMax);
  filter.audit.cursor = parameters.text("cursor");
  filter.includes_closed = parameters.flag("include_closed").value_or(false);
  if (auto checked = parameters.check(); !checked) return std::unexpected(checked.error());
  return filter;
}

}  // namespace clawdforge
