#include "cli/token_settings.h"

#include <boost/json.hpp>

namespace clawdforge {
namespace json = boost::json;
namespace {

enum class SettingKind { text, number, list, repeated };

struct Setting {
  const char* flag;
  const char* field;
  SettingKind kind;
  const char* help;
};

constexpr Setting kSettings[] = {
    {"--ip-cidrs", "ip_cidrs", SettingKind::list, "addresses it may call from: 10.0.0.0/8,::1"},
    {"--event-format", "event_format", SettingKind::text, "acp or simple"},
    {"--max-sessions", "max_sessions", SettingKind::number, "open sessions it may have"},
    {"--max-runs", "max_runs", SettingKind::number, "runs it may have at once"},
    {"--agents", "agents", SettingKind::list, "agents it may use: claude,demo (default: all)"},
    {"--models", "models", SettingKind::list,
     "models it may name, each may end in *: sonnet,haiku* (default: all)"},
    {"--permission-mode-max", "permission_mode_max", SettingKind::text,
     "deny_all, approve_reads, ask or approve_all (default): no session of it is given more"},
    {"--mcp", "mcp", SettingKind::text,
     "MCP servers it may use: none (default), named (those of the gateway's file), http (also "
     "addresses below --mcp-url), any. Note: any lets it run commands on this machine"},
    {"--mcp-url", "mcp_urls", SettingKind::repeated,
     "an address below which its own MCP servers may be, for --mcp http; may be repeated"},
};

json::value value_of(const Setting& setting, const std::vector<std::string>& texts) {
  if (setting.kind == SettingKind::number) return std::stoll(texts.front());
  if (setting.kind == SettingKind::text) return json::string(texts.front());
  return json::array(texts.begin(), texts.end());
}

}  // namespace

void add_setting_options(CLI::App& command, TokenSettings& settings) {
  for (const Setting& setting : kSettings) {
    CLI::Option* const option =
        command.add_option(setting.flag, settings.given[setting.field], setting.help);
    option->allow_extra_args(false);
    if (setting.kind == SettingKind::list) option->delimiter(',');
    if (setting.kind == SettingKind::number) option->check(CLI::TypeValidator<std::int64_t>());
    if (setting.kind == SettingKind::text || setting.kind == SettingKind::number) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
  }
}

void add_reset_option(CLI::App& command, TokenSettings& settings) {
  std::vector<std::string> fields;
  for (const Setting& setting : kSettings) fields.emplace_back(setting.field);
  command
      .add_option("--reset", settings.reset, "fields that get their default back: models,max_runs")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(fields));
}

void add_fields(const TokenSettings& settings, json::object& body) {
  for (const std::string& field : settings.reset) body[field] = nullptr;
  for (const Setting& setting : kSettings) {
    const auto given = settings.given.find(setting.field);
    if (given == settings.given.end() || given->second.empty()) continue;
    body[setting.field] = value_of(setting, given->second);
  }
}

}  // namespace clawdforge
