#include "cli/commands/token_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

namespace clawdforge {
namespace json = boost::json;
namespace {

enum class SettingKind { text, number, list, repeated };

struct Setting {
  const char* flag;
  const char* field;
  SettingKind kind;
  const char* value;
  const char* help;
  Offers offers = Offers::nothing;
  const char* words = "";
};

constexpr Setting kSettings[] = {
    {"--ip-cidrs", "ip_cidrs", SettingKind::list, "LIST",
     "addresses it may call from: 10.0.0.0/8,::1"},
    {"--event-format", "event_format", SettingKind::text, "FORMAT",
     "of a turn's events: acp or simple (what older SDKs read)", Offers::words, "acp simple"},
    {"--max-sessions", "max_sessions", SettingKind::number, "COUNT", "open sessions it may have"},
    {"--max-runs", "max_runs", SettingKind::number, "COUNT", "runs it may have at once"},
    {"--agents", "agents", SettingKind::list, "LIST",
     "agents it may use: claude,demo (default: all)", Offers::agents},
    {"--models", "models", SettingKind::list, "LIST",
     "models it may name, each may end in *: sonnet,haiku* (default: all)"},
    {"--permission-mode-max", "permission_mode_max", SettingKind::text, "MODE",
     "deny_all, approve_reads, ask or approve_all (default): no session of it is given more"},
    {"--mcp", "mcp", SettingKind::text, "WHICH",
     "MCP servers it may use: none (default), named (those of the gateway's file), http (also "
     "addresses below --mcp-url), any. Note: any lets it run commands on this machine"},
    {"--mcp-url", "mcp_urls", SettingKind::repeated, "URL",
     "an address below which its own MCP servers may be, for --mcp http; may be repeated"},
};

// A list may be given with commas, and in several options.
json::array list_in(const std::vector<std::string>& texts, bool has_commas) {
  json::array list;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = has_commas ? std::min(rest.find(','), rest.size()) : rest.size();
      if (end > 0) list.emplace_back(json::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return list;
}

json::value setting_value(const Setting& setting, const Arguments& arguments) {
  switch (setting.kind) {
    case SettingKind::number:
      return *arguments.number(setting.flag);
    case SettingKind::text:
      return json::string(arguments.text(setting.flag));
    case SettingKind::list:
      return list_in(arguments.all(setting.flag), true);
    case SettingKind::repeated:
      break;
  }
  return list_in(arguments.all(setting.flag), false);
}

}  // namespace

std::vector<Option> setting_options() {
  std::vector<Option> options;
  for (const Setting& setting : kSettings) {
    const bool is_one = setting.kind == SettingKind::text || setting.kind == SettingKind::number;
    options.push_back({.name = setting.flag,
                       .value = setting.value,
                       .help = setting.help,
                       .repeats = !is_one,
                       .is_number = setting.kind == SettingKind::number,
                       .offers = setting.offers,
                       .words = setting.words});
  }
  return options;
}

std::vector<Option> change_options() {
  auto options = setting_options();
  options.push_back({.name = "--reset",
                     .value = "FIELDS",
                     .help = "fields that get their default back: models,max_runs",
                     .repeats = true});
  return options;
}

Asked<void> add_setting_fields(const Arguments& arguments, json::object& body) {
  for (const json::value& field : list_in(arguments.all("--reset"), true)) {
    const std::string name(field.get_string());
    const auto is_it = [&](const Setting& setting) { return setting.field == name; };
    if (std::ranges::none_of(kSettings, is_it)) {
      return complain(kExitUsage, fmt::format("there is no field {} to reset; see clawdforge token "
                                              "set --help.",
                                              name));
    }
    body[name] = nullptr;
  }
  for (const Setting& setting : kSettings) {
    if (arguments.has(setting.flag)) body[setting.field] = setting_value(setting, arguments);
  }
  return {};
}

}  // namespace clawdforge
