#include "config/agents/agent_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/version.h"

namespace clawdforge {
namespace {

using Modes = std::map<PermissionMode, ModeSwitches>;
using enum PermissionMode;

// Of an agent that asks us before it uses any tool.
const Modes kAsksAlways = {{deny_all, {}}, {approve_reads, {}}, {ask, {}}, {approve_all, {}}};
// Claude does not ask before it only reads: where all is denied or asked, it has to.
const ModeSwitches kClaudeAsks = {
    .env = {},
    .arguments = {"--settings", R"({"permissions":{"ask":["Bash","Read","Edit","Write"]}})"},
    .agent_mode = {},
    .files = {}};
const Modes kClaudeModes = {
    {deny_all, kClaudeAsks}, {approve_reads, {}}, {ask, kClaudeAsks}, {approve_all, {}}};
// Of an agent of which nothing is known.
const Modes kUnknownModes = {{approve_all, {}}};
// acpx answers by itself, so it cannot wait for an answer of ours; and what Claude reads without a
// question it cannot deny.
const Modes kClaudeAcpxModes = {{approve_reads, {}}, {approve_all, {}}};

// `claude -p` denies what it would have to ask for. Its own rules let it read in its directory.
const std::map<PermissionMode, std::vector<std::string>> kClaudePrintModes = {
    {deny_all,
     {"--permission-mode", "dontAsk", "--settings",
      R"({"permissions":{"ask":["Bash","Read","Edit","Write"]}})"}},
    {approve_reads, {"--permission-mode", "manual"}},
    // Not bypassPermissions, which it refuses to root.
    {approve_all,
     {"--allowedTools",
      "Bash,Read,Edit,Write,NotebookEdit,WebFetch,WebSearch,Glob,Grep,Task,Skill"}},
};

// Codex has a sandbox of its own, which the kernel holds. In `read-only` its commands read, and
// neither write nor reach the network; it asks for all that leaves the sandbox. For deny_all it has
// no commands either.
const Modes kCodexModes = {
    {deny_all,
     {.env = {{"CODEX_CONFIG",
               R"({"features":{"shell_tool":false,"unified_exec":false,"view_image":false,)"
               R"("multi_agent":false},"web_search":"disabled"})"}},
      .arguments = {},
      .agent_mode = "read-only",
      .files = {}}},
    {approve_reads, {.env = {}, .arguments = {}, .agent_mode = "read-only", .files = {}}},
    {ask, {.env = {}, .arguments = {}, .agent_mode = "read-only", .files = {}}},
    {approve_all, {.env = {}, .arguments = {}, .agent_mode = "agent-full-access", .files = {}}},
};

// Rules of the administrator win over what the owner has allowed Gemini for good.
ModeSwitches gemini_rules(const std::string& rules) {
  const std::string name = "clawdforge-policy.toml";
  return {.env = {},
          .arguments = {"--admin-policy", fmt::format("{}/{}", kTempDirMark, name)},
          .agent_mode = {},
          .files = {{name, rules}}};
}

Modes gemini_modes() {
  const auto rule = [](std::string_view tools, std::string_view decision, int priority) {
    return fmt::format("[[rule]]\ntoolName = {}\ndecision = \"{}\"\npriority = {}\n", tools,
                       decision, priority);
  };
  constexpr std::string_view kReading =
      R"(["glob", "grep_search", "list_directory", "read_file", "read_many_files"])";
  return {{deny_all, gemini_rules(rule("\"*\"", "deny", 900))},
          {approve_reads, gemini_rules(rule(kReading, "allow", 901) + rule("\"*\"", "deny", 900))},
          {ask, gemini_rules(rule("\"*\"", "ask_user", 900))},
          {approve_all, {}}};
}

// Each tool by its name: the owner's rule for a tool would win over ours for all tools. What
// opencode finds in the session's directory must not change its rules, so that is not read.
ModeSwitches opencode_rules(std::string_view reading, std::string_view acting) {
  std::string rules = fmt::format(R"({{"*":"{}")", acting);
  for (const std::string_view tool : {"read", "glob", "grep", "list", "external_directory"}) {
    rules += fmt::format(R"(,"{}":"{}")", tool, reading);
  }
  for (const std::string_view tool : {"bash", "edit", "task", "webfetch", "websearch", "codesearch",
                                      "lsp", "skill", "question", "doom_loop"}) {
    rules += fmt::format(R"(,"{}":"{}")", tool, acting);
  }
  ModeSwitches switches;
  switches.env["OPENCODE_PERMISSION"] = rules + "}";
  if (acting != "allow") switches.env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1";
  return switches;
}

Modes opencode_modes() {
  return {{deny_all, opencode_rules("deny", "deny")},
          {approve_reads, opencode_rules("allow", "deny")},
          {ask, opencode_rules("ask", "ask")},
          {approve_all, opencode_rules("allow", "allow")}};
}

// It is in our own program, and understands what Claude's command line does.
AgentSpec demo(const std::string& own_program) {
  AgentSpec spec;
  spec.name = "demo";
  spec.command = {own_program, "demo-agent", "--acp"};
  spec.one_shot_protocol = OneShotProtocol::claude_print;
  spec.one_shot_command = {own_program, "demo-agent"};
  spec.modes = kAsksAlways;
  spec.one_shot_modes = kClaudePrintModes;
  spec.takes_system_prompt = true;
  spec.default_model = "demo-small";
  spec.version = kVersion;
  spec.login.is_needed = false;
  return spec;
}

// Versions that tests/real was run with; `./test` installs the newest of each.
const ProgramFacts kClaudeFacts = {"@anthropic-ai/claude-code", "2.1.197", "2.1.325"};
const ProgramFacts kClaudeAdapterFacts = {"@agentclientprotocol/claude-agent-acp", "0.99.1",
                                          "0.99.1"};
const ProgramFacts kAcpxFacts = {"acpx", "0.19.1", "0.19.1"};

LoginSpec claude_login(const std::string& program) {
  return {.is_needed = true,
          .command = {program, "auth", "login"},
          .status_command = {program, "auth", "status", "--json"},
          .keys = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
          .dir_variable = "CLAUDE_CONFIG_DIR",
          .dir = ".claude",
          .file = ".credentials.json",
          .refresh_lock = ".oauth_refresh.lock",
          .storage_variable = "CLAUDE_SECURESTORAGE_CONFIG_DIR",
          .storage_version_min = "2.1.197",
          .elsewhere = {"ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
                        "CLAUDE_CODE_USE_FOUNDRY"}};
}

// Below it, sessions go through the adapter or acpx. tests/real was run with it, too.
constexpr std::string_view kClaudeStreamOldest = "2.1.197";

AgentSpec claude(const Config& config) {
  AgentSpec spec;
  spec.name = "claude";
  spec.protocol = AgentProtocol::claude;
  spec.command = {config.claude_bin};
  spec.version_min = kClaudeStreamOldest;
  spec.one_shot_protocol = OneShotProtocol::claude_print;
  spec.one_shot_command = {config.claude_bin};
  spec.one_shot_modes = kClaudePrintModes;
  spec.install_hint =
      "The agent claude is not installed: install it with "
      "`npm install -g @anthropic-ai/claude-code`.";
  spec.login_hint =
      "The agent claude is not logged in: run `clawdforge agent login claude` on the gateway's "
      "machine.";
  spec.facts = kClaudeFacts;
  spec.one_shot_facts = kClaudeFacts;
  spec.warm.is_auto = config.warm;
  return spec;
}

// Claude, spoken to in another way: through its adapter, or through acpx, which knows the adapter
// by itself.
AgentSpec claude_by(AgentProtocol protocol, const Config& config) {
  AgentSpec spec = claude(config);
  if (protocol == AgentProtocol::claude) return spec;
  spec.protocol = protocol;
  spec.warm = {};
  spec.version_min.clear();
  if (protocol == AgentProtocol::acpx) {
    spec.command = {"claude"};
    return spec;
  }
  spec.command = {"claude-agent-acp"};
  spec.facts = kClaudeAdapterFacts;
  spec.install_hint =
      "The adapter of the agent claude is not installed: install it with "
      "`npm install -g @agentclientprotocol/claude-agent-acp`.";
  return spec;
}

// The ways that there are to speak with Claude, the best first; at least one.
std::vector<AgentSpec> ways_to_claude(const Config& config, const ProgramFinder& find) {
  std::vector<AgentSpec> ways;
  if (find(config.claude_bin)) ways.push_back(claude(config));
  AgentSpec adapter = claude_by(AgentProtocol::acp, config);
  if (auto path = find(adapter.command.front())) {
    adapter.command.front() = std::move(*path);
    ways.push_back(std::move(adapter));
  }
  if (find(config.acpx_bin)) ways.push_back(claude_by(AgentProtocol::acpx, config));
  if (ways.empty()) ways.push_back(claude(config));
  return ways;
}

// What the programs of several makers read to reach their models' APIs.
const std::vector<std::string> kNetwork = {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
                                           "HTTP_PROXY",    "HTTPS_PROXY",  "ALL_PROXY",
                                           "NO_PROXY",      "http_proxy",   "https_proxy",
                                           "all_proxy",     "no_proxy"};

// How Claude's programs reach the model's API, beside the network, and with which login.
const std::vector<std::string> kClaudeNames = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
                                               "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
                                               "CLAUDE_CONFIG_DIR"};

// What makes Claude's programs fit for a server. A dead API is tried again by the caller, who
// knows how long it may take; by default they would try for three minutes.
const std::map<std::string, std::string> kClaudeSwitches = {
    {"CLAUDE_CODE_MAX_RETRIES", "2"},
    {"CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"},  // else @/etc/passwd in a prompt is read and sent
    {"DISABLE_TELEMETRY", "1"},
    {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
    {"DISABLE_AUTOUPDATER", "1"},
};

// The mail, drive and calendar that the owner has connected to Claude are not for apps. Claude
// offers them to every process that has the login; no flag of acpx keeps them out.
const std::map<std::string, std::string> kClaudeForced = {
    {"ENABLE_CLAUDEAI_MCP_SERVERS", "false"},
};

bool names_claude(const std::string& word) {
  return word.substr(word.find_last_of('/') + 1).contains("claude");
}

// Whether it is Claude, or the adapter for it. To acpx it may be given by its name or as a
// command.
bool is_claude_program(const AgentSpec& spec) {
  if (spec.protocol == AgentProtocol::claude) return true;
  if (spec.protocol == AgentProtocol::acpx) return std::ranges::any_of(spec.command, names_claude);
  return !spec.command.empty() && names_claude(spec.command.front());
}

bool is_claude(const AgentSpec& spec) { return spec.name == "claude" || is_claude_program(spec); }

void make_claude(AgentSpec& spec, const Config& config) {
  spec.login = claude_login(config.claude_bin);
  spec.env.insert(spec.env.end(), kClaudeNames.begin(), kClaudeNames.end());
  spec.env.insert(spec.env.end(), kNetwork.begin(), kNetwork.end());
  spec.default_env = kClaudeSwitches;
  spec.forced_env = kClaudeForced;
  spec.temp_dir_env = {"CLAUDE_CODE_TMPDIR"};
  spec.takes_claude_options = true;
  spec.takes_system_prompt = true;
  if (!spec.modes.empty()) return;
  spec.modes = spec.protocol == AgentProtocol::acpx     ? kClaudeAcpxModes
               : spec.protocol == AgentProtocol::claude ? kClaudeModes
                                                        : kAsksAlways;
}

struct Known {
  const char* name;
  std::vector<std::string> command;
  ProgramFacts facts;
  LoginSpec login;
  std::vector<std::string> env;
  Modes modes;
  bool takes_title = false;
  std::string key_auth_method = {};
};

const std::vector<Known>& known_agents() {
  static const std::vector<Known> kKnown = {
      {"codex",
       {"codex-acp"},
       {"@agentclientprotocol/codex-acp", "2.6.0", "2.6.0"},
       {.is_needed = true,
        .command = {"codex", "login"},
        .status_command = {"codex", "login", "status"},
        .keys = {"OPENAI_API_KEY", "CODEX_API_KEY"},
        .dir_variable = "CODEX_HOME",
        .dir = ".codex",
        .file = "auth.json"},
       {"OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"},
       kCodexModes,
       true,
       "api-key"},
      {"gemini",
       {"gemini", "--acp"},
       {"@google/gemini-cli", "0.61.0", "0.61.0"},
       {.is_needed = true,
        .command = {"gemini"},
        .status_command = {},
        .keys = {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"},
        .dir_variable = {},
        .dir = ".gemini",
        .file = "oauth_creds.json"},
       {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS"},
       gemini_modes(),
       false},
      {"opencode",
       {"opencode", "acp"},
       {"opencode-ai", "1.18.33", "1.18.33"},
       {.is_needed = true,
        .command = {"opencode", "auth", "login"},
        .status_command = {},
        .keys = {},
        .dir_variable = "XDG_DATA_HOME",
        .dir = ".local/share",
        .file = "opencode/auth.json"},
       {"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"},
       opencode_modes(),
       false},
  };
  return kKnown;
}

AgentSpec from_known(const Known& known) {
  AgentSpec spec;
  spec.name = known.name;
  spec.command = known.command;
  spec.env = known.env;
  spec.modes = known.modes;
  spec.takes_title = known.takes_title;
  spec.key_auth_method = known.key_auth_method;
  spec.env.insert(spec.env.end(), kNetwork.begin(), kNetwork.end());
  spec.install_hint =
      fmt::format("The agent {} is not installed: install it with `npm install -g {}`.", known.name,
                  known.facts.package);
  spec.login_hint = fmt::format(
      "The agent {0} is not logged in: run `clawdforge agent login {0}` on the gateway's machine.",
      known.name);
  spec.facts = known.facts;
  spec.login = known.login;
  return spec;
}

std::string install_hint(const std::string& name, AgentProtocol protocol) {
  if (protocol == AgentProtocol::acpx) {
    return fmt::format(
        "The agent {} is driven through acpx, which is not there: install it with "
        "`npm install -g acpx`.",
        name);
  }
  return fmt::format(
      "The program of the agent {} is not there: install it, or correct its table "
      "in the gateway's configuration.",
      name);
}

AgentSpec from_table(const std::string& name, const AgentTable& table, AgentSpec known) {
  AgentSpec spec = std::move(known);
  spec.name = name;
  if (!table.command.empty()) {
    spec.protocol = table.protocol.value_or(AgentProtocol::acp);
    spec.command = table.command;
    spec.version_min.clear();
    spec.facts = {};
    spec.warm = {};
    spec.key_auth_method.clear();
  }
  if (table.warm) spec.warm = *table.warm;
  // acpx starts the agent by itself, and does not pass our switches on.
  if (spec.protocol == AgentProtocol::acpx) spec.modes.clear();
  if (table.permission_modes) spec.modes = *table.permission_modes;
  spec.env.insert(spec.env.end(), table.env.begin(), table.env.end());
  spec.set_env = table.set_env;
  spec.default_model = table.model;
  spec.permission_mode = table.permission_mode;
  spec.auth_method = table.auth_method;
  if (spec.install_hint.empty() || spec.protocol == AgentProtocol::acpx) {
    spec.install_hint = install_hint(name, spec.protocol);
  }
  if (spec.login_hint.empty()) {
    spec.login_hint = fmt::format("The agent {} is not logged in on the gateway's machine.", name);
  }
  return spec;
}

AgentSpec completed(AgentSpec spec, const Config& config) {
  // Not the demo agent, whatever our own program is called.
  if (spec.name != "demo" && is_claude(spec)) make_claude(spec, config);
  // Not what another program is called claude for: it may not know this model.
  const bool is_own = spec.name == "claude" && is_claude_program(spec);
  if (is_own && spec.default_model.empty()) spec.default_model = config.default_model;
  if (spec.modes.empty()) spec.modes = kUnknownModes;
  if (spec.protocol == AgentProtocol::acpx) spec.facts = kAcpxFacts;
  spec.applies_owner_settings = config.claude_owner_settings;
  return spec;
}

// The second best way, unless the file says which one is meant.
void add_fallback(AgentSpec& spec, const std::vector<AgentSpec>& ways, const Config& config) {
  const auto table = config.agents.find(spec.name);
  const bool is_chosen =
      table != config.agents.end() && (table->second.protocol || !table->second.command.empty());
  if (is_chosen || ways.size() < 2 || spec.protocol != AgentProtocol::claude) return;
  AgentSpec fallback =
      table == config.agents.end() ? ways[1] : from_table(spec.name, table->second, ways[1]);
  spec.fallback = std::make_shared<const AgentSpec>(completed(std::move(fallback), config));
}

}  // namespace

std::vector<AgentSpec> agent_specs(const Config& config, const ProgramFinder& find,
                                   const std::string& own_program) {
  std::map<std::string, AgentSpec> by_name;
  by_name.emplace("demo", demo(own_program));
  const std::vector<AgentSpec> claudes = ways_to_claude(config, find);
  by_name.emplace("claude", claudes.front());
  for (const Known& known : known_agents()) by_name.emplace(known.name, from_known(known));
  for (auto& [name, spec] : by_name) {
    if (name == "demo" || name == "claude") continue;
    if (auto path = find(spec.command.front())) spec.command.front() = std::move(*path);
  }
  for (const auto& [name, table] : config.agents) {
    AgentSpec known = by_name.contains(name) ? by_name[name] : AgentSpec{};
    // The file may choose among the ways to speak with Claude.
    if (name == "claude" && table.protocol && table.command.empty()) {
      const auto chosen = std::ranges::find(claudes, *table.protocol, &AgentSpec::protocol);
      known = chosen == claudes.end() ? claude_by(*table.protocol, config) : *chosen;
    }
    by_name[name] = from_table(name, table, known);
  }
  std::vector<AgentSpec> specs;
  for (auto& [name, spec] : by_name) {
    if (name == "claude") add_fallback(spec, claudes, config);
    specs.push_back(completed(std::move(spec), config));
  }
  return specs;
}

}  // namespace clawdforge
