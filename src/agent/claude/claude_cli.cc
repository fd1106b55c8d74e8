#include "agent/claude/claude_cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "json/json_members.h"

namespace clawdforge {
namespace {

// As Claude calls those that only look.
constexpr std::string_view kReadingTools = "Read,Glob,Grep";

std::string names_of(const ToolChoice& tools) {
  switch (tools.set) {
    case ToolSet::none:
      return "";
    case ToolSet::read:
      return std::string(kReadingTools);
    case ToolSet::all:
      return "default";
    case ToolSet::named:
      break;
  }
  return fmt::format("{}", fmt::join(tools.names, ","));
}

}  // namespace

void append_limits(std::vector<std::string>& arguments, const SingleUse& limits) {
  if (limits.budget_usd) {
    arguments.insert(arguments.end(),
                     {"--max-budget-usd", fmt::format("{:.6f}", *limits.budget_usd)});
  }
  if (limits.tools) arguments.insert(arguments.end(), {"--tools", names_of(*limits.tools)});
  if (limits.max_turns) {
    arguments.insert(arguments.end(), {"--max-turns", fmt::to_string(*limits.max_turns)});
  }
}

std::vector<std::string> claude_arguments(const OneShotRequest& request, bool owner_settings,
                                          bool is_spare) {
  std::vector<std::string> arguments = {"-p"};
  if (is_spare) {
    arguments.insert(arguments.end(), {"--input-format", "stream-json", "--output-format",
                                       "stream-json", "--verbose"});
  } else {
    arguments.insert(arguments.end(), {"--output-format", "json"});
  }
  if (!request.model.empty()) arguments.insert(arguments.end(), {"--model", request.model});
  if (!request.system_file.empty()) {
    const bool is_append = request.system_mode == SystemMode::append;
    arguments.emplace_back(is_append ? "--append-system-prompt-file" : "--system-prompt-file");
    arguments.push_back(request.system_file);
  }
  if (!request.effort.empty()) {
    arguments.insert(arguments.end(), {"--effort", request.effort});
  }
  if (!request.schema.empty()) {
    arguments.insert(arguments.end(), {"--json-schema", request.schema});
  }
  append_limits(
      arguments,
      {.budget_usd = request.budget_usd, .tools = request.tools, .max_turns = request.max_turns});
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
  return with_attachments(std::move(text), request.attachments);
}

std::string spare_greeting() {
  return R"({"type":"control_request","request_id":"1","request":{"subtype":"initialize"}})"
         "\n";
}

std::string spare_prompt(std::string_view text) {
  std::string line = R"({"type":"user","message":{"role":"user")";
  append_member(line, "content", text);
  return line + R"(},"parent_tool_use_id":null})" + "\n";
}

}  // namespace clawdforge
