#include "cli/commands/token_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

namespace clawdforge {
namespace json = boost::json;
namespace {

enum class SettingKind { text, number, list, repeated, budgets };

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
    {"--expires-at", "expires_at", SettingKind::number, "SECONDS",
     "when its token stops working, in unix seconds: $(date -d '+30 days' +%s)"},
    {"--asks-per-minute", "asks_per_minute", SettingKind::number, "COUNT",
     "runs and turns it may begin in a minute"},
    {"--budgets", "budgets", SettingKind::budgets, "LIST",
     "what it may use, window:unit:limit: day:usd:5,month:tokens:1000000,total:asks:100 (hour, "
     "day, "
     "week, month or total; usd, tokens, asks or agent_seconds)"},
    {"--upload-bytes-max", "upload_bytes_max", SettingKind::number, "BYTES",
     "uploads it may have at once"},
    {"--weight", "weight", SettingKind::number, "COUNT",
     "its share of places when several apps wait, 1 (default) to 100"},
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
    {"--webhook-url", "webhook_urls", SettingKind::repeated, "URL",
     "an address below which its webhooks may be called; may be repeated"},
    {"--workspaces", "workspaces", SettingKind::list, "LIST",
     "workspaces of the gateway's file that its agents may work on: blog,notes, or * for all "
     "(default: none)"},
    {"--jail", "jail", SettingKind::text, "MODE",
     "auto (default), files, full or off: how its agents are kept from what is not their own"},
    {"--jail-read", "jail_read", SettingKind::repeated, "PATH",
     "what its agents can read beside their own; may be repeated"},
    {"--jail-write", "jail_write", SettingKind::repeated, "PATH",
     "what its agents can write beside their own; may be repeated"},
    {"--memory-max", "memory_max", SettingKind::text, "SIZE",
     "memory of one of its agents with all that it starts: 3GiB"},
    {"--pids-max", "pids_max", SettingKind::number, "COUNT", "processes of one of its agents"},
    {"--cpu-max-percent", "cpu_max_percent", SettingKind::number, "PERCENT",
     "processor time of one of its agents; 200: of two processors"},
    {"--net", "net", SettingKind::text, "MODE",
     "open (default), proxy or none: which network its agents have"},
    {"--net-allow", "net_allow", SettingKind::repeated, "HOST:PORT",
     "what its agents reach with --net proxy; may be repeated"},
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

// What is not window:unit:limit is left as it is: the gateway says what is wrong with it.
json::array budgets_in(const std::vector<std::string>& texts) {
  json::array budgets;
  for (const json::value& item : list_in(texts, true)) {
    const std::string text(item.get_string());
    const std::size_t first = text.find(':');
    const std::size_t second = text.rfind(':');
    boost::system::error_code error;
    const json::value limit =
        second == std::string::npos ? nullptr : json::parse(text.substr(second + 1), error);
    if (error || first == second || !limit.is_number()) {
      budgets.emplace_back(item);
      continue;
    }
    budgets.push_back({{"window", text.substr(0, first)},
                       {"unit", text.substr(first + 1, second - first - 1)},
                       {"limit", limit}});
  }
  return budgets;
}

json::value setting_value(const Setting& setting, const Arguments& arguments) {
  switch (setting.kind) {
    case SettingKind::number:
      return arguments.number(setting.flag).value_or(0);
    case SettingKind::text:
      return json::string(arguments.text(setting.flag));
    case SettingKind::budgets:
      return budgets_in(arguments.all(setting.flag));
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
