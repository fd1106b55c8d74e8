#include "config/config_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/json_text.h"
#include "config/config_keys.h"
#include "config/text/config_text.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::size_t kAlignedValueBytesMax = 48;  // longer values push their remark aside

std::string toml_array(const std::vector<std::string>& items) {
  std::vector<std::string> strings;
  for (const std::string& item : items) strings.push_back(toml_string(item));
  return fmt::format("[{}]", fmt::join(strings, ", "));
}

std::string toml_variables(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : variables) {
    const std::string shown = looks_secret(name) ? "(set)" : mask_passwords(value);
    pairs.push_back(fmt::format("{} = {}", name, toml_string(shown)));
  }
  return fmt::format("{{ {} }}", fmt::join(pairs, ", "));
}

// As an array where no mode needs anything else.
std::string toml_modes(const std::map<PermissionMode, ModeSwitches>& modes) {
  std::vector<std::string> names;
  std::vector<std::string> tables;
  bool needs_table = false;
  for (const auto& [mode, switches] : modes) {
    const std::string name(choice_name(mode, kPermissionModes));
    std::vector<std::string> pairs;
    if (!switches.env.empty()) pairs.push_back("env = " + toml_variables(switches.env));
    if (!switches.arguments.empty()) pairs.push_back("args = " + toml_array(switches.arguments));
    if (!switches.agent_mode.empty()) {
      pairs.push_back("mode = " + toml_string(switches.agent_mode));
    }
    needs_table = needs_table || !pairs.empty();
    names.push_back(name);
    tables.push_back(fmt::format("{} = {{ {} }}", name, fmt::join(pairs, ", ")));
  }
  return needs_table ? fmt::format("{{ {} }}", fmt::join(tables, ", ")) : toml_array(names);
}

// Of a table that may have further ones after it.
class TableLines {
 public:
  TableLines(std::vector<Config::Line>& lines, std::string table, std::string_view source)
      : lines_(lines), table_(std::move(table)), source_(source) {}

  void add(std::string_view key, std::string value) {
    lines_.push_back({fmt::format("{}.{}", table_, key), std::move(value), std::string(source_)});
  }
  void add_policy(const Policy& policy) {
    for (const PolicyField& field : policy_fields()) {
      const boost::json::value value = field.show(policy);
      // JSON's texts and lists of texts are TOML as well.
      if (!value.is_null()) add(field.name, boost::json::serialize(value));
    }
  }

 private:
  std::vector<Config::Line>& lines_;
  const std::string table_;
  const std::string_view source_;
};

void add_agent(TableLines& lines, const AgentTable& agent) {
  if (agent.protocol || !agent.command.empty()) {
    lines.add("protocol", toml_string(choice_name(agent.protocol.value_or(AgentProtocol::acp),
                                                  kAgentProtocols)));
  }
  if (!agent.command.empty()) lines.add("command", toml_array(agent.command));
  if (!agent.env.empty()) lines.add("env", toml_array(agent.env));
  if (!agent.set_env.empty()) lines.add("set_env", toml_variables(agent.set_env));
  if (!agent.model.empty()) lines.add("model", toml_string(agent.model));
  if (agent.permission_mode) {
    lines.add("permission_mode",
              toml_string(choice_name(*agent.permission_mode, kPermissionModes)));
  }
  if (agent.permission_modes) lines.add("permission_modes", toml_modes(*agent.permission_modes));
  if (!agent.auth_method.empty()) lines.add("auth_method", toml_string(agent.auth_method));
  lines.add_policy(agent.policy);
}

// A header is usually there for the sake of a secret, whatever its name.
void add_mcp_server(TableLines& lines, const McpServerTable& server) {
  if (!server.command.empty()) lines.add("command", toml_array(server.command));
  if (!server.env.empty()) lines.add("env", toml_array(server.env));
  if (!server.set_env.empty()) lines.add("set_env", toml_variables(server.set_env));
  if (server.url.empty()) return;
  lines.add("type", toml_string(server.type));
  lines.add("url", toml_string(mask_passwords(server.url)));
  for (const auto& [name, value] : server.headers) {
    lines.add(fmt::format("headers.{}", name), toml_string("(set)"));
  }
  for (const auto& [name, variable] : server.headers_env) {
    lines.add(fmt::format("headers_env.{}", name), toml_string(variable));
  }
}

}  // namespace

std::vector<Config::Line> config_lines(const Config& config,
                                       const std::map<std::string_view, std::string>& sources,
                                       const std::string& tables_source) {
  std::vector<Config::Line> lines;
  for (const KeyRow& row : key_rows()) {
    const auto source = sources.find(row.name);
    lines.push_back({std::string(row.name), row.show(config),
                     source == sources.end() ? "default" : source->second});
  }
  TableLines(lines, "defaults", tables_source).add_policy(config.defaults);
  for (const auto& [name, agent] : config.agents) {
    TableLines table(lines, "agents." + name, tables_source);
    add_agent(table, agent);
  }
  for (const auto& [name, server] : config.mcp_servers) {
    TableLines table(lines, "mcp_servers." + name, tables_source);
    add_mcp_server(table, server);
  }
  for (const auto& [name, workspace] : config.workspaces) {
    TableLines table(lines, "workspaces." + name, tables_source);
    table.add("path", toml_string(workspace.path));
    table.add("mode", toml_string(name_of(workspace.mode)));
    if (workspace.mode == WorkspaceMode::worktree) {
      table.add("branch", toml_string(workspace.branch));
    }
    if (!workspace.setup.empty()) table.add("setup", toml_array(workspace.setup));
  }
  return lines;
}

std::string render_config(const Config& config) {
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const Config::Line& line : config.lines) {
    key_width = std::max(key_width, line.key.size());
    if (line.value.size() <= kAlignedValueBytesMax) {
      value_width = std::max(value_width, line.value.size());
    }
  }
  std::string out;
  for (const Config::Line& line : config.lines) {
    // A remark is not a value. It is commented out, so that the text can be used as a file.
    const std::string key = (line.value.starts_with('(') ? "# " : "") + line.key;
    fmt::format_to(std::back_inserter(out), "{:<{}} = {:<{}}  # ", key, key_width + 2, line.value,
                   value_width);
    append_printable(out, line.source);  // the name of the file may be anything
    out += '\n';
  }
  return out;
}

std::string render_config_as_json(const Config& config) {
  boost::json::array keys;
  for (const Config::Line& line : config.lines) {
    std::string source;
    append_printable(source, line.source);
    keys.push_back({{"key", line.key}, {"value", line.value}, {"source", source}});
  }
  return boost::json::serialize(boost::json::object{{"keys", std::move(keys)}}) + "\n";
}

}  // namespace clawdforge
