#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "config/config_toml.h"
#include "config/config_values.h"
#include "config/text/config_text.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::size_t kCommandPartsMax = 256;
constexpr std::size_t kVariablesMax = 256;
constexpr std::size_t kVariableNameBytesMax = 256;

// Each of these takes a value, or gives the end of a sentence that says why not. None of the
// sentences shows a value, which may be a key.

bool has_nul(const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [](const std::string& part) { return part.find('\0') != std::string::npos; });
}

std::string take_command(const toml::node& node, std::vector<std::string>& command) {
  const auto parts = strings_of(node);
  if (!parts || parts->empty() || parts->size() > kCommandPartsMax || parts->front().empty()) {
    return "it must be an array of strings, the program first.";
  }
  if (has_nul(*parts)) return "it must not have a NUL character in it.";
  command = *parts;
  return {};
}

// Of letters, digits and `more`.
bool is_word(std::string_view text, std::size_t bytes_max, std::string_view more) {
  return !text.empty() && text.size() <= bytes_max && std::ranges::all_of(text, [&](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           more.contains(c);
  });
}

bool is_variable(std::string_view name) {
  return is_word(name, kVariableNameBytesMax, "_") && !(name[0] >= '0' && name[0] <= '9');
}

std::string take_env(const toml::node& node, std::vector<std::string>& env) {
  const auto names = strings_of(node);
  if (!names || names->size() > kVariablesMax || !std::ranges::all_of(*names, is_variable)) {
    return "it must be an array of names of environment variables.";
  }
  env = *names;
  return {};
}

std::string take_set_env(const toml::node& node, std::map<std::string, std::string>& set_env) {
  const toml::table* table = node.as_table();
  if (table == nullptr || table->size() > kVariablesMax) {
    return "it must be a table of strings like { NAME = \"value\" }.";
  }
  for (const auto& [name, value] : *table) {
    const auto* text = value.as_string();
    if (!is_variable(name.str()) || text == nullptr ||
        text->get().find('\0') != std::string::npos) {
      return fmt::format("{} must be the name of a variable with a string as its value.",
                         in_quotes(name.str()));
    }
    set_env.emplace(name.str(), text->get());
  }
  return {};
}

bool is_header_name(std::string_view name) { return is_word(name, kVariableNameBytesMax, "-_"); }

std::string take_headers(const toml::node& node, std::map<std::string, std::string>& headers,
                         bool (*is_value)(std::string_view)) {
  const toml::table* table = node.as_table();
  if (table == nullptr || table->size() > kVariablesMax) {
    return "it must be a table of strings like { Authorization = \"value\" }.";
  }
  for (const auto& [name, value] : *table) {
    const auto* text = value.as_string();
    if (!is_header_name(name.str()) || text == nullptr || !is_value(text->get())) {
      return fmt::format("{} must be the name of a header with a usable string as its value.",
                         in_quotes(name.str()));
    }
    headers.emplace(name.str(), text->get());
  }
  return {};
}

std::string take_policy(const PolicyField& field, const toml::node& node, Policy& policy) {
  boost::json::value value = boost::json::object();  // what no field takes
  if (const auto* text = node.as_string()) value = text->get();
  if (const auto* number = node.as_integer()) value = number->get();
  if (const auto texts = strings_of(node)) {
    value = boost::json::array(texts->begin(), texts->end());
  }
  const std::string wrong = field.set(policy, value);
  return wrong.empty() ? "" : fmt::format("it {}.", wrong);
}

using ModeTable = std::map<PermissionMode, ModeSwitches>;

std::string take_switch(std::string_view key, const toml::node& node, ModeSwitches& switches) {
  if (key == "env") return take_set_env(node, switches.env);
  if (key == "mode") {
    const auto* text = node.as_string();
    if (text == nullptr) return "it must be a string.";
    switches.agent_mode = text->get();
    return {};
  }
  if (key != "args") return "there are only env, args and mode.";
  const auto parts = strings_of(node);
  if (!parts || parts->size() > kCommandPartsMax || has_nul(*parts)) {
    return "it must be an array of strings.";
  }
  switches.arguments = *parts;
  return {};
}

std::string take_mode(std::string_view name, const toml::node& node, ModeTable& modes) {
  const auto mode = parse_choice(name, kPermissionModes);
  if (!mode) return mode.error();
  const toml::table* table = node.as_table();
  if (table == nullptr) return fmt::format("{} must be a table.", name);
  for (const auto& [key, value] : *table) {
    std::string fault = take_switch(key.str(), value, modes[*mode]);
    if (!fault.empty()) return fmt::format("{}.{}: {}", name, key.str(), fault);
  }
  modes.try_emplace(*mode);
  return {};
}

// A list of modes, or a table that says for each mode what else the agent needs.
std::string take_modes(const toml::node& node, ModeTable& modes) {
  const toml::table* table = node.as_table();
  const toml::array* list = node.as_array();
  if ((table != nullptr && table->empty()) || (list != nullptr && list->empty())) {
    return "it must name a mode.";
  }
  if (table != nullptr) {
    for (const auto& [name, value] : *table) {
      if (std::string fault = take_mode(name.str(), value, modes); !fault.empty()) return fault;
    }
    return {};
  }
  const auto names = strings_of(node);
  if (!names) return "it must be an array of modes, or a table like { ask = { mode = \"x\" } }.";
  for (const std::string& name : *names) {
    const auto mode = parse_choice(name, kPermissionModes);
    if (!mode) return mode.error();
    modes.try_emplace(*mode);
  }
  return {};
}

// Gives each key of the table to `take`, which says what is wrong with it.
template <class Take>
Result<void> each_key(const toml::table& table, const std::string& name, std::string_view file,
                      std::span<const std::string> known, Take take) {
  for (const auto& [key, node] : table) {
    const auto found = std::ranges::find(known, key.str());
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const std::string& one : known) names.push_back(name + "." + one);
      return refuse_unknown_key(fmt::format("{}.{}", name, key.str()), file, key.source(), names,
                                name + ".");
    }
    const std::string fault = take(*found, node);
    if (fault.empty()) continue;
    return refuse_config(
        fmt::format("{} is wrong: {}", in_file(name + "." + *found, file, key.source()), fault));
  }
  return {};
}

// By the name of its table.
bool is_built_in_agent(std::string_view table) {
  return table == "agents.claude" || table == "agents.codex" || table == "agents.gemini" ||
         table == "agents.opencode";
}

std::string take_warmth(const toml::node& node, std::optional<Warmth>& warm) {
  warm = node.is_string() ? warmth_from(node.value_or(std::string()))
                          : warmth_from(node.value_exact<std::int64_t>().value_or(-1));
  return warm ? "" : fmt::format("it must be \"auto\", or a number from 0 to {}.", kSparesMax);
}

// Parses one table [agents.NAME].
class AgentReader {
 public:
  AgentReader(std::string name, std::string_view file) : name_(std::move(name)), file_(file) {}

  Result<AgentTable> read(const toml::table& table) {
    static const std::vector<std::string> kKnown = known_keys();
    const auto taken =
        each_key(table, name_, file_, kKnown,
                 [this](std::string_view key, const toml::node& node) { return take(key, node); });
    if (!taken) return std::unexpected(taken.error());
    // A built-in agent has one. Only Claude's can be spoken to in several ways.
    const bool has_choice = name_ == "agents.claude" || !table.contains("protocol");
    if (agent_.command.empty() && (!is_built_in_agent(name_) || !has_choice)) {
      return refuse_config(fmt::format("{} has no command: it needs one like [\"my-agent\"].",
                                       in_file(name_, file_, table.source())));
    }
    // acpx answers by itself, and cannot wait for an answer of ours.
    if (agent_.protocol == AgentProtocol::acpx && agent_.permission_modes &&
        agent_.permission_modes->contains(PermissionMode::ask)) {
      return refuse_config(
          fmt::format("{} is wrong: acpx cannot hold an agent to ask.",
                      in_file(name_ + ".permission_modes", file_, table.source())));
    }
    return std::move(agent_);
  }

 private:
  static std::vector<std::string> known_keys() {
    std::vector<std::string> keys = {
        "protocol",         "command",     "env",       "set_env", "permission_mode",
        "permission_modes", "auth_method", "login_dir", "warm",    "model"};
    for (const PolicyField& field : policy_fields()) {
      // None of these can be said of one agent.
      if (field.name != "agents" && field.name != "webhook_urls" && field.name != "workspaces") {
        keys.emplace_back(field.name);
      }
    }
    return keys;
  }

  std::string take(std::string_view key, const toml::node& node) {
    if (key == "command") return take_command(node, agent_.command);
    if (key == "env") return take_env(node, agent_.env);
    if (key == "set_env") return take_set_env(node, agent_.set_env);
    if (key == "permission_modes") return take_modes(node, agent_.permission_modes.emplace());
    if (key == "warm") return take_warmth(node, agent_.warm);
    if (const PolicyField* const field = find_policy_field(key)) {
      return take_policy(*field, node, agent_.policy);
    }
    const auto* text = node.as_string();
    if (text == nullptr) return "it must be a string.";
    if (key == "protocol") {
      const auto protocol = parse_choice(text->get(), kAgentProtocols);
      if (protocol) agent_.protocol = *protocol;
      return protocol ? "" : protocol.error();
    }
    if (key == "login_dir") return set_login_dir(name_, text->get(), agent_.login_dir);
    if (key == "auth_method") agent_.auth_method = text->get();
    if (key == "model") agent_.model = text->get();
    if (key == "model" && !is_model_name(agent_.model)) return "it must be the name of a model.";
    if (key == "auth_method" || key == "model") return {};
    const auto mode = parse_choice(text->get(), kPermissionModes);
    if (mode) agent_.permission_mode = *mode;
    return mode ? "" : mode.error();
  }

  const std::string name_;  // with its "agents."
  const std::string_view file_;
  AgentTable agent_;
};

bool is_table_name(std::string_view name) {
  constexpr std::size_t kNameBytesMax = 64;
  return is_word(name, kNameBytesMax, "-_");
}

bool has_no_line_break(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

std::string take_of_server(std::string_view key, const toml::node& node, McpServerTable& server) {
  if (key == "command") return take_command(node, server.command);
  if (key == "env") return take_env(node, server.env);
  if (key == "set_env") return take_set_env(node, server.set_env);
  if (key == "headers") return take_headers(node, server.headers, has_no_line_break);
  if (key == "headers_env") return take_headers(node, server.headers_env, is_variable);
  const auto* text = node.as_string();
  if (key == "type") {
    if (text == nullptr || (text->get() != "http" && text->get() != "sse")) {
      return "it must be \"http\" or \"sse\".";
    }
    server.type = text->get();
    return {};
  }
  if (text == nullptr || !WebAddress::parse(text->get())) {
    return "it must be an address that begins with http:// or https://.";
  }
  server.url = text->get();
  return {};
}

std::string take_of_workspace(std::string_view key, const toml::node& node, Workspace& workspace) {
  if (key == "setup") return take_command(node, workspace.setup);
  const auto* text = node.as_string();
  if (text == nullptr) return "it must be a string.";
  const std::string& value = text->get();
  if (key == "mode") {
    const auto mode = workspace_mode_from(value);
    if (mode) workspace.mode = *mode;
    return mode ? "" : "it must be one of read, direct, copy, worktree.";
  }
  if (key == "branch") {
    workspace.branch = value;
    return is_branch_pattern(value)
               ? ""
               : "it must have {session} in it, and beside that and {app} only letters, digits, "
                 "dashes, underscores, dots and slashes.";
  }
  const bool is_path = value.starts_with('/') || value.starts_with("~/");
  if (!is_path || value.contains('\0')) return "it must begin with / or ~/.";
  workspace.path = value;
  return {};
}

}  // namespace

Result<std::map<std::string, AgentTable>> read_agents(const toml::node& node,
                                                      std::string_view file) {
  constexpr std::string_view kShape = "agents are tables like [agents.claude].";
  const toml::table* table = node.as_table();
  if (table == nullptr) return refuse_type("agents", file, node, kShape);
  std::map<std::string, AgentTable> agents;
  for (const auto& [key, value] : *table) {
    if (!is_table_name(key.str())) {
      return refuse_config(
          fmt::format("{} is not a name for an agent: it must have 1 to 64 letters, "
                      "digits, underscores and dashes.",
                      in_file(in_quotes(key.str()), file, key.source())));
    }
    const std::string name = fmt::format("agents.{}", key.str());
    if (key.str() == "demo") {
      return refuse_config(
          fmt::format("{} cannot be set: the demo agent is built in; give yours another name.",
                      in_file(name, file, key.source())));
    }
    if (!value.is_table()) return refuse_type(name, file, value, kShape);
    auto agent = AgentReader(name, file).read(*value.as_table());
    if (!agent) return std::unexpected(agent.error());
    agents.emplace(key.str(), std::move(*agent));
  }
  return agents;
}

Result<Policy> read_defaults(const toml::node& node, std::string_view file) {
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    return refuse_type("defaults", file, node, "it is a table like [defaults].");
  }
  std::vector<std::string> known;
  for (const PolicyField& field : policy_fields()) {
    if (!field.is_of_jail) known.emplace_back(field.name);
  }
  Policy policy;
  const auto taken =
      each_key(*table, "defaults", file, known, [&](std::string_view key, const toml::node& value) {
        return take_policy(*find_policy_field(key), value, policy);
      });
  if (!taken) return std::unexpected(taken.error());
  return policy;
}

Result<std::map<std::string, McpServerTable>> read_mcp_servers(const toml::node& node,
                                                               std::string_view file) {
  constexpr std::string_view kShape = "MCP servers are tables like [mcp_servers.files].";
  static const std::vector<std::string> kKnown = {"command", "env",     "set_env",    "url",
                                                  "type",    "headers", "headers_env"};
  const toml::table* table = node.as_table();
  if (table == nullptr) return refuse_type("mcp_servers", file, node, kShape);
  std::map<std::string, McpServerTable> servers;
  for (const auto& [key, value] : *table) {
    const std::string name = fmt::format("mcp_servers.{}", key.str());
    if (!is_table_name(key.str())) {
      return refuse_config(
          fmt::format("{} is not a name for an MCP server: it must have 1 to 64 letters, "
                      "digits, underscores and dashes.",
                      in_file(in_quotes(key.str()), file, key.source())));
    }
    if (!value.is_table()) return refuse_type(name, file, value, kShape);
    McpServerTable server;
    const auto taken = each_key(*value.as_table(), name, file, kKnown,
                                [&](std::string_view field, const toml::node& given) {
                                  return take_of_server(field, given, server);
                                });
    if (!taken) return std::unexpected(taken.error());
    const bool has_command = !server.command.empty();
    if (has_command == !server.url.empty()) {
      return refuse_config(
          fmt::format("{} needs either a command or a url.", in_file(name, file, key.source())));
    }
    servers.emplace(key.str(), std::move(server));
  }
  return servers;
}

Result<NamedWorkspaces> read_workspaces(const toml::node& node, std::string_view file) {
  constexpr std::string_view kShape = "workspaces are tables like [workspaces.blog].";
  static const std::vector<std::string> kKnown = {"path", "mode", "branch", "setup"};
  const toml::table* table = node.as_table();
  if (table == nullptr) return refuse_type("workspaces", file, node, kShape);
  NamedWorkspaces workspaces;
  for (const auto& [key, value] : *table) {
    const std::string name = fmt::format("workspaces.{}", key.str());
    if (!is_table_name(key.str())) {
      return refuse_config(
          fmt::format("{} is not a name for a workspace: it must have 1 to 64 letters, "
                      "digits, underscores and dashes.",
                      in_file(in_quotes(key.str()), file, key.source())));
    }
    if (!value.is_table()) return refuse_type(name, file, value, kShape);
    const toml::table& given = *value.as_table();
    Workspace workspace;
    const auto taken =
        each_key(given, name, file, kKnown, [&](std::string_view field, const toml::node& item) {
          return take_of_workspace(field, item, workspace);
        });
    if (!taken) return std::unexpected(taken.error());
    for (const std::string_view needed : {"path", "mode"}) {
      if (given.contains(needed)) continue;
      return refuse_config(fmt::format("{} has no {}.", in_file(name, file, key.source()), needed));
    }
    const bool is_own =
        workspace.mode == WorkspaceMode::copy || workspace.mode == WorkspaceMode::worktree;
    if (!workspace.setup.empty() && !is_own) {
      return refuse_config(
          fmt::format("{} has a setup, which only the modes copy and worktree run.",
                      in_file(name, file, key.source())));
    }
    workspaces.emplace(key.str(), std::move(workspace));
  }
  return workspaces;
}

}  // namespace clawdforge
