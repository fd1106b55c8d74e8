#include "agent/claude/claude_cli.h"

#include <fmt/format.h>

namespace clawdforge {

std::vector<std::string> claude_arguments(const OneShotRequest& request, bool owner_settings) {
  std::vector<std::string> arguments = {"-p", "--output-format", "json", "--model", request.model};
  if (!request.system_file.empty()) {
    const bool is_append = request.system_mode == SystemMode::append;
    arguments.emplace_back(is_append ? "--append-system-prompt-file" : "--system-prompt-file");
    arguments.push_back(request.system_file);
  }
  if (!request.effort.empty()) {
    arguments.insert(arguments.end(), {"--effort", request.effort});
  }
  if (request.budget_usd) {
    arguments.insert(arguments.end(),
                     {"--max-budget-usd", fmt::format("{:.6f}", *request.budget_usd)});
  }
  if (!owner_settings) {
    arguments.insert(arguments.end(),
                     {"--setting-sources", "", "--strict-mcp-config", "--no-session-persistence"});
  }
  return arguments;
}

std::string prompt_text(const OneShotRequest& request) {
  // A prompt that begins with a slash is a command to the command line itself; after a
  // newline it is text.
  std::string text = request.prompt.starts_with('/') ? "\n" : "";
  text += request.prompt;
  if (request.attachments.empty()) return text;
  text += "\n\nAttached files in the current directory:";
  for (const std::string& name : request.attachments) text.append("\n- ").append(name);
  return text;
}

}  // namespace clawdforge
