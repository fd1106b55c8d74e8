#include <fmt/format.h>

#include <algorithm>

#include "config/config_text.h"
#include "config/config_toml.h"
#include "config/config_values.h"

namespace clawdforge {
namespace {

// By the name of its table.
bool is_built_in_agent(std::string_view table) {
  return table == "agents.claude" || table == "agents.codex" || table == "agents.gemini" ||
         table == "agents.opencode";
}

// Parses one table [agents.NAME].
class AgentReader {
 public:
  AgentReader(std::string name, std::string_view file) : name_(std::move(name)), file_(file) {}

  Result<AgentTable> read(const toml::table& table) {
    static const std::vector<std::string> kKnown = {"protocol", "command",         "env",
                                                    "set_env",  "permission_mode", "auth_method"};
    for (const auto& [key, node] : table) {
      const auto known = std::ranges::find(kKnown, key.str());
      if (known == kKnown.end()) {
        return refuse_unknown_key(fmt::format("{}.{}", name_, key.str()), file_, key.source(),
                                  prefixed(kKnown), name_ + ".");
      }
      const std::string fault = take(*known, node);
      if (fault.empty()) continue;
      return refuse_config(fmt::format("{} is wrong: {}",
                                       in_file(name_ + "." + *known, file_, key.source()), fault));
    }
    // A built-in agent has one; which protocol that speaks is not for the file to say.
    if (agent_.command.empty() && (!is_built_in_agent(name_) || table.contains("protocol"))) {
      return refuse_config(fmt::format("{} has no command: it needs one like [\"my-agent\"].",
                                       in_file(name_, file_, table.source())));
    }
    return std::move(agent_);
  }

 private:
  static constexpr std::size_t kCommandPartsMax = 256;
  static constexpr std::size_t kVariablesMax = 256;
  static constexpr std::size_t kVariableNameBytesMax = 256;

  std::vector<std::string> prefixed(const std::vector<std::string>& keys) const {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back(name_ + "." + key);
    return names;
  }

  std::string take(std::string_view key, const toml::node& node) {
    if (key == "command") return take_command(node);
    if (key == "env") return take_env(node);
    if (key == "set_env") return take_set_env(node);
    const auto* text = node.as_string();
    if (text == nullptr) return "it must be a string.";
    if (key == "protocol") {
      const auto protocol = parse_choice(text->get(), kAgentProtocols);
      if (protocol) agent_.protocol = *protocol;
      return protocol ? "" : protocol.error();
    }
    if (key == "auth_method") {
      agent_.auth_method = text->get();
      return {};
    }
    const auto mode = parse_choice(text->get(), kPermissionModes);
    if (mode) agent_.permission_mode = *mode;
    return mode ? "" : mode.error();
  }

  std::string take_command(const toml::node& node) {
    const auto parts = strings_of(node);
    if (!parts || parts->empty() || parts->size() > kCommandPartsMax || parts->front().empty()) {
      return "it must be an array of strings, the program first.";
    }
    for (const std::string& part : *parts) {
      if (part.find('\0') != std::string::npos) return "it must not have a NUL character in it.";
    }
    agent_.command = *parts;
    return {};
  }

  static bool is_variable(std::string_view name) {
    return !name.empty() && name.size() <= kVariableNameBytesMax &&
           !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, [](char c) {
             return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_';
           });
  }

  std::string take_env(const toml::node& node) {
    const auto names = strings_of(node);
    if (!names || names->size() > kVariablesMax || !std::ranges::all_of(*names, is_variable)) {
      return "it must be an array of names of environment variables.";
    }
    agent_.env = *names;
    return {};
  }

  // Its sentences never show a value, which may be a key.
  std::string take_set_env(const toml::node& node) {
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
      agent_.set_env.emplace(name.str(), text->get());
    }
    return {};
  }

  const std::string name_;  // with its "agents."
  const std::string_view file_;
  AgentTable agent_;
};

bool is_agent_name(std::string_view name) {
  constexpr std::size_t kNameBytesMax = 64;
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

}  // namespace

Result<std::map<std::string, AgentTable>> read_agents(const toml::node& node,
                                                      std::string_view file) {
  constexpr std::string_view kShape = "agents are tables like [agents.claude].";
  const toml::table* table = node.as_table();
  if (table == nullptr) return refuse_type("agents", file, node, kShape);
  std::map<std::string, AgentTable> agents;
  for (const auto& [key, value] : *table) {
    if (!is_agent_name(key.str())) {
      return refuse_config(
          fmt::format("{} is no name for an agent: it must have 1 to 64 letters, "
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

}  // namespace clawdforge
