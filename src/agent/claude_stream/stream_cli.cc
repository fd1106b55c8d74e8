#include "agent/claude_stream/stream_cli.h"

#include <algorithm>
#include <boost/json.hpp>

#include "agent/claude/claude_cli.h"
#include "json/json_fields.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

// [{"name":…,"value":…}] as an object.
json::object pairs_in(const json::object& server, std::string_view key) {
  json::object pairs;
  const json::array* list = array_in(server, key);
  if (list == nullptr) return pairs;
  for (const json::value& entry : *list) {
    const json::object* pair = entry.if_object();
    if (pair == nullptr) continue;
    pairs[text_in(*pair, "name").value_or("")] = text_in(*pair, "value").value_or("");
  }
  return pairs;
}

json::object mcp_server_of(const json::object& server) {
  json::object out;
  if (const auto url = text_in(server, "url")) {
    out["type"] = text_in(server, "type").value_or("http");
    out["url"] = *url;
    out["headers"] = pairs_in(server, "headers");
    return out;
  }
  out["type"] = "stdio";
  out["command"] = text_in(server, "command").value_or("");
  const json::array* args = array_in(server, "args");
  out["args"] = args == nullptr ? json::array() : *args;
  out["env"] = pairs_in(server, "env");
  return out;
}

std::string body_of(std::string_view subtype) {
  std::string body = "{";
  append_member(body, "subtype", subtype);
  return body;
}

// `answer` is what stands in "response".
std::string control_answer(std::string_view request_id, std::string_view answer) {
  std::string line = R"({"type":"control_response","response":{"subtype":"success")";
  append_member(line, "request_id", request_id);
  append_name(line, "response");
  return line.append(answer).append("}}");
}

}  // namespace

std::vector<std::string> claude_stream_arguments(const StartOrder& order) {
  // No caller can answer AskUserQuestion: what it asks has no words in the protocol.
  std::vector<std::string> arguments = {"-p",
                                        "--input-format",
                                        "stream-json",
                                        "--output-format",
                                        "stream-json",
                                        "--verbose",
                                        "--include-partial-messages",
                                        "--permission-prompt-tool",
                                        "stdio",
                                        "--disallowedTools",
                                        "AskUserQuestion"};
  // An id that another kind of agent gave may be anything, also an option. None has this one.
  const std::string id = is_claude_conversation_id(order.conversation_id)
                             ? order.conversation_id
                             : "00000000-0000-0000-0000-000000000000";
  arguments.insert(arguments.end(), {order.loads_conversation ? "--resume" : "--session-id", id});
  if (!order.spec.applies_owner_settings) {
    arguments.insert(arguments.end(), {"--setting-sources", "", "--strict-mcp-config"});
  }
  if (!order.single) return arguments;
  arguments.emplace_back("--no-session-persistence");
  append_limits(arguments, *order.single);
  return arguments;
}

bool is_claude_conversation_id(std::string_view id) {
  constexpr std::size_t kUuidBytes = 36;
  return id.size() == kUuidBytes &&
         std::ranges::all_of(id,
                             [](char c) {
                               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
                                      (c >= 'A' && c <= 'F') || c == '-';
                             }) &&
         id.front() != '-';
}

std::string control_request(std::string_view request_id, std::string_view body) {
  std::string line = R"({"type":"control_request")";
  append_member(line, "request_id", request_id);
  append_name(line, "request");
  return line.append(body).append("}");
}

std::string initialize_body(const Conversation& conversation) {
  std::string body = body_of("initialize");
  if (!conversation.schema.empty()) {
    append_name(body, "jsonSchema");
    body += conversation.schema;
  }
  if (conversation.system.empty()) return body + "}";
  if (conversation.system_mode == SystemMode::append) {
    append_member(body, "appendSystemPrompt", conversation.system);
  } else {
    append_name(body, "systemPrompt");
    body += '[';
    append_json_string(body, conversation.system);
    body += ']';
  }
  return body + "}";
}

std::string set_model_body(std::string_view model) {
  std::string body = body_of("set_model");
  append_member(body, "model", model);
  return body + "}";
}

std::string set_effort_body(std::string_view effort) {
  std::string body = body_of("apply_flag_settings");
  append_name(body, "settings");
  body += '{';
  append_member(body, "effortLevel", effort);
  return body + "}}";
}

std::string set_mode_body(std::string_view mode) {
  std::string body = body_of("set_permission_mode");
  append_member(body, "mode", mode);
  return body + "}";
}

std::optional<std::string> set_mcp_servers_body(std::string_view servers) {
  const auto list = parse_json(servers, kAgentJsonDepthMax);
  if (!list || !list->is_array()) return std::nullopt;
  json::object by_name;
  for (const json::value& entry : list->get_array()) {
    const json::object* server = entry.if_object();
    if (server == nullptr) continue;
    by_name[text_in(*server, "name").value_or("")] = mcp_server_of(*server);
  }
  std::string body = body_of("mcp_set_servers");
  append_name(body, "servers");
  return body + json::serialize(by_name) + "}";
}

std::string user_message(std::string_view prompt) {
  // A prompt that begins with a slash is a command to the command line itself; after a newline it
  // is text.
  std::string text = prompt.starts_with('/') ? "\n" : "";
  text += prompt;
  std::string line = R"({"type":"user","message":{"role":"user")";
  append_member(line, "content", text);
  return line + R"(},"parent_tool_use_id":null})";
}

std::string allow_answer(std::string_view request_id, std::string_view input,
                         std::string_view updates) {
  std::string answer = R"({"behavior":"allow","updatedInput":)";
  answer += input;
  if (!updates.empty()) answer.append(R"(,"updatedPermissions":)").append(updates);
  return control_answer(request_id, answer + "}");
}

std::string deny_answer(std::string_view request_id, std::string_view message) {
  std::string answer = R"({"behavior":"deny")";
  append_member(answer, "message", message);
  return control_answer(request_id, answer + "}");
}

std::string unknown_request_answer(std::string_view request_id) {
  std::string line = R"({"type":"control_response","response":{"subtype":"error")";
  append_member(line, "request_id", request_id);
  append_member(line, "error", "The gateway does not know this request.");
  return line + "}}";
}

}  // namespace clawdforge
