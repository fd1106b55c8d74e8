#include "agent/claude/claude_cli.h"

#include <algorithm>
#include <array>

namespace clawdforge {
namespace {

constexpr std::string_view kOurPrefix = "CLAWDFORGE_";

constexpr std::array<std::string_view, 13> kPlainNames = {"PATH",
                                                          "HOME",
                                                          "USER",
                                                          "LOGNAME",
                                                          "SHELL",
                                                          "LANG",
                                                          "LANGUAGE",
                                                          "TZ",
                                                          "XDG_CONFIG_HOME",
                                                          "XDG_CACHE_HOME",
                                                          "XDG_DATA_HOME",
                                                          "XDG_STATE_HOME",
                                                          "XDG_RUNTIME_DIR"};

// How the model's API is reached, and with which login.
constexpr std::array<std::string_view, 16> kClaudeNames = {
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR", "SSL_CERT_FILE",        "SSL_CERT_DIR",       "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",        "HTTPS_PROXY",          "ALL_PROXY",          "NO_PROXY",
    "http_proxy",        "https_proxy",          "all_proxy",          "no_proxy"};

// A dead API is retried by the caller, who knows how long it may take. By default the
// command line would try for three minutes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSwitches = {{
    {"CLAUDE_CODE_MAX_RETRIES", "2"},
    {"CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"},  // else @/etc/passwd in a prompt is read and sent
    {"DISABLE_TELEMETRY", "1"},
    {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
    {"DISABLE_AUTOUPDATER", "1"},
}};

template <class Names>
void pick(Environment& into, const Environment& ours, const Names& names) {
  for (const auto& name : names) {
    const auto found = ours.find(std::string(name));
    if (found != ours.end() && !found->first.starts_with(kOurPrefix)) into.insert(*found);
  }
}

}  // namespace

bool needs_file(std::string_view system) {
  return system.size() > kSystemArgumentBytesMax || system.contains('\0');
}

std::vector<std::string> claude_arguments(const OneShotRequest& question, bool owner_settings,
                                          const std::string& system_file) {
  std::vector<std::string> arguments = {"-p", "--output-format", "json", "--model", question.model};
  if (!question.system.empty()) {
    const bool is_append = question.system_mode == SystemMode::append;
    const std::string option = is_append ? "--append-system-prompt" : "--system-prompt";
    const bool by_file = !system_file.empty();
    arguments.push_back(by_file ? option + "-file" : option);
    arguments.push_back(by_file ? system_file : question.system);
  }
  if (!question.effort.empty()) {
    arguments.insert(arguments.end(), {"--effort", question.effort});
  }
  if (!owner_settings) {
    arguments.insert(arguments.end(),
                     {"--setting-sources", "", "--strict-mcp-config", "--no-session-persistence"});
  }
  return arguments;
}

std::string prompt_text(const OneShotRequest& question) {
  // A prompt that begins with a slash is a command to the command line itself; behind a
  // newline it is text.
  std::string text = question.prompt.starts_with('/') ? "\n" : "";
  text += question.prompt;
  if (question.attachments.empty()) return text;
  text += "\n\nAttached files in the current directory:";
  for (const std::string& name : question.attachments) text.append("\n- ").append(name);
  return text;
}

Environment plain_environment(const Environment& ours, const std::vector<std::string>& more) {
  Environment environment;
  pick(environment, ours, kPlainNames);
  pick(environment, ours, more);
  for (const auto& variable : ours) {
    if (variable.first.starts_with("LC_")) environment.insert(variable);
  }
  return environment;
}

Environment claude_environment(const Environment& ours, const std::vector<std::string>& more,
                               const Environment& set, const std::string& temp_dir) {
  Environment environment = plain_environment(ours, more);
  pick(environment, ours, kClaudeNames);
  for (const auto& [name, value] : kSwitches) environment.try_emplace(std::string(name), value);
  for (const auto& [name, value] : set) {
    if (!name.starts_with(kOurPrefix)) environment.insert_or_assign(name, value);
  }
  environment["TMPDIR"] = temp_dir;
  environment["CLAUDE_CODE_TMPDIR"] = temp_dir;
  return environment;
}

std::vector<std::string> secrets_in(const Environment& environment) {
  constexpr std::array<std::string_view, 5> kMarks = {"KEY", "TOKEN", "SECRET", "PASSWORD",
                                                      "CREDENTIAL"};
  constexpr std::size_t kShort = 8;  // a shorter value would mask ordinary words
  std::vector<std::string> secrets;
  for (const auto& [name, value] : environment) {
    const bool is_secret = std::ranges::any_of(
        kMarks, [&](std::string_view mark) { return name.find(mark) != std::string::npos; });
    if (is_secret && value.size() >= kShort) secrets.push_back(value);
  }
  return secrets;
}

}  // namespace clawdforge
