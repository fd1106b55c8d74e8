#include "agent/acp/acp_request.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "agent/acp/acp_message.h"
#include "base/version.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace {

// Without a title the adapters for Claude and Codex ask the model for one, at the owner's cost.
constexpr std::string_view kTitle = "clawdforge session";

constexpr std::string_view kAskAlways =
    R"(,"settings":{"permissions":{"ask":["Bash","Read","Edit","Write"]}})";

// Their JSON text in one line. None: it is none, or no array.
std::optional<std::string> one_line_of(const std::string& mcp_servers) {
  if (mcp_servers.empty()) return "[]";
  const auto servers = parse_json(mcp_servers, kAgentJsonDepthMax);
  if (!servers || !servers->is_array()) return std::nullopt;
  return boost::json::serialize(*servers);
}

// An object adds to the agent's own prompt, a text replaces it.
void append_system(std::string& meta, const Conversation& conversation) {
  if (conversation.system_mode == SystemMode::replace) {
    append_member(meta, "systemPrompt", conversation.system);
    return;
  }
  append_name(meta, "systemPrompt");
  meta += '{';
  append_member(meta, "append", conversation.system);
  meta += '}';
}

// The adapter for Claude adds the owner's MCP servers, asks for a guess at the next prompt
// after every turn, and takes a prompt that begins with a slash for a command, unless it is
// told not to. It does not ask before it only reads: where all is denied or asked, it has to.
std::string meta_of(const Conversation& conversation, const AcpDialect& dialect) {
  std::string meta = "{";
  if (dialect.takes_system && !conversation.system.empty()) {
    append_system(meta, conversation);
  }
  if (dialect.is_claude) {
    if (meta.back() != '{') meta += ',';
    meta += R"("claudeCode":{"options":{"promptSuggestions":false,"verbatimPrompts":true)";
    const bool asks_always = conversation.permission_mode == PermissionMode::deny_all ||
                             conversation.permission_mode == PermissionMode::ask;
    if (asks_always) meta += kAskAlways;
    if (!dialect.owner_settings) meta += R"(,"settingSources":[],"strictMcpConfig":true)";
    append_member(meta, "title", kTitle);
    meta += "}}";
  }
  return meta + "}";
}

}  // namespace

std::string acp_request(std::int64_t id, std::string_view method, std::string_view params) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", id, method,
                     params);
}

std::string acp_notification(std::string_view method, std::string_view params) {
  return fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{}}})", method, params);
}

std::string initialize_params() {
  return fmt::format(
      R"({{"protocolVersion":1,"clientCapabilities":{{"fs":{{"readTextFile":false,)"
      R"("writeTextFile":false}},"terminal":false}},"clientInfo":{{"name":"clawdforge",)"
      R"("title":"clawdforge","version":"{}"}}}})",
      kVersion);
}

std::string authenticate_params(std::string_view method_id) {
  std::string params = "{";
  append_member(params, "methodId", method_id);
  return params + "}";
}

std::optional<std::string> session_params(const Conversation& conversation,
                                          const AcpDialect& dialect, std::string_view session_id) {
  const auto servers = one_line_of(conversation.mcp_servers);
  if (!servers) return std::nullopt;
  std::string params = "{";
  if (!session_id.empty()) append_member(params, "sessionId", session_id);
  append_member(params, "cwd", conversation.working_dir);
  params.append(R"(,"mcpServers":)").append(*servers);
  const std::string meta = meta_of(conversation, dialect);
  if (meta != "{}") params.append(R"(,"_meta":)").append(meta);
  return params + "}";
}

std::string prompt_params(std::string_view session_id, const std::vector<std::string_view>& texts) {
  std::string params = "{";
  append_member(params, "sessionId", session_id);
  params += R"(,"prompt":[)";
  for (const std::string_view text : texts) {
    if (params.back() != '[') params += ',';
    params += R"({"type":"text")";
    append_member(params, "text", text);
    params += '}';
  }
  return params + "]}";
}

std::string cancel_params(std::string_view session_id) {
  std::string params = "{";
  append_member(params, "sessionId", session_id);
  return params + "}";
}

std::string set_option_params(std::string_view session_id, std::string_view option_id,
                              std::string_view value) {
  std::string params = "{";
  append_member(params, "sessionId", session_id);
  append_member(params, "configId", option_id);
  append_member(params, "value", value);
  return params + "}";
}

std::string set_mode_params(std::string_view session_id, std::string_view mode) {
  std::string params = "{";
  append_member(params, "sessionId", session_id);
  append_member(params, "modeId", mode);
  return params + "}";
}

std::string set_title_params(std::string_view session_id) {
  std::string params = "{";
  append_member(params, "sessionId", session_id);
  append_member(params, "title", kTitle);
  return params + "}";
}

std::string permission_answer(std::string_view id, const std::optional<std::string>& option_id) {
  std::string outcome = R"({"outcome":")";
  outcome += option_id ? "selected\"" : "cancelled\"";
  if (option_id) append_member(outcome, "optionId", *option_id);
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{{"outcome":{}}}}}}})", id, outcome);
}

std::string unknown_method_answer(std::string_view id) {
  return fmt::format(
      R"({{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"Method not found"}}}})", id);
}

}  // namespace clawdforge
