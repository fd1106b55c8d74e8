#include "config/config_render.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "config/config_keys.h"
#include "config/config_text.h"

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

}  // namespace

std::vector<Config::Line> config_lines(const Config& config,
                                       const std::map<std::string_view, std::string>& sources,
                                       const std::string& agents_source) {
  std::vector<Config::Line> lines;
  for (const KeyRow& row : key_rows()) {
    const auto source = sources.find(row.name);
    lines.push_back({std::string(row.name), row.show(config),
                     source == sources.end() ? "default" : source->second});
  }
  for (const auto& [name, agent] : config.agents) {
    const std::string table = "agents." + name;
    const auto add = [&](std::string_view key, std::string value) {
      lines.push_back({fmt::format("{}.{}", table, key), std::move(value), agents_source});
    };
    if (!agent.command.empty()) {
      add("protocol", toml_string(choice_name(agent.protocol, kAgentProtocols)));
      add("command", toml_array(agent.command));
    }
    if (!agent.env.empty()) add("env", toml_array(agent.env));
    if (!agent.set_env.empty()) add("set_env", toml_variables(agent.set_env));
    if (agent.permission_mode) {
      add("permission_mode", toml_string(choice_name(*agent.permission_mode, kPermissionModes)));
    }
    if (!agent.auth_method.empty()) add("auth_method", toml_string(agent.auth_method));
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
    // A remark is no value: commented out, the text stays a file that can be used.
    const std::string key = (line.value.starts_with('(') ? "# " : "") + line.key;
    fmt::format_to(std::back_inserter(out), "{:<{}} = {:<{}}  # ", key, key_width + 2, line.value,
                   value_width);
    append_printable(out, line.source);  // the name of the file may be anything
    out += '\n';
  }
  return out;
}

}  // namespace clawdforge
