#include "agent/demo/demo_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "agent/demo/demo_acp.h"
#include "agent/demo/demo_words.h"
#include "agent/failure/masking.h"
#include "base/json_text.h"
#include "base/version.h"

namespace clawdforge {
namespace {

constexpr std::size_t kDemoPromptBytesMax = 32 * 1024 * 1024;

// What our own callers pass to Claude's command line; the demo takes no notice of most.
constexpr std::array<std::string_view, 5> kFlags = {
    "-p", "--print", "--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"};
constexpr std::array<std::string_view, 13> kOptions = {"--output-format",
                                                       "--json-schema",
                                                       "--permission-mode",
                                                       "--settings",
                                                       "--allowedTools",
                                                       "--model",
                                                       "--append-system-prompt",
                                                       "--system-prompt",
                                                       "--append-system-prompt-file",
                                                       "--system-prompt-file",
                                                       "--effort",
                                                       "--setting-sources",
                                                       "--max-budget-usd"};

struct Call {
  bool is_acp = false;
  bool is_print = false;
  bool is_version = false;
  bool is_json = false;
  bool may_read = true;
  bool may_act = false;
  std::string mistake;  // empty: none
};

Call read_arguments(const std::vector<std::string>& arguments) {
  Call call;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--version") {
      call.is_version = true;
    } else if (argument == "--acp") {
      call.is_acp = true;
    } else if (std::ranges::find(kFlags, argument) != kFlags.end()) {
      call.is_print = call.is_print || argument == "-p" || argument == "--print";
    } else if (std::ranges::find(kOptions, argument) == kOptions.end()) {
      call.mistake = fmt::format("unknown argument '{}'", argument);
      break;
    } else if (++i == arguments.size()) {
      call.mistake = fmt::format("{} needs a value", argument);
    } else if (argument == "--permission-mode") {
      call.may_read = arguments[i] != "dontAsk";
    } else if (argument == "--allowedTools") {
      call.may_act = true;
    } else if (argument == "--output-format") {
      call.is_json = arguments[i] == "json";
      if (!call.is_json && arguments[i] != "text") {
        call.mistake = "--output-format is text or json";
      }
    }
  }
  const bool is_told = call.is_print || call.is_version || call.is_acp;
  if (call.mistake.empty() && !is_told) call.mistake = "-p or --acp is needed";
  return call;
}

// Standard input to its end; none if that fails or there is too much.
std::optional<std::string> read_prompt() {
  std::string prompt;
  std::array<char, 64 * 1024> piece{};
  while (true) {
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return prompt;
    if (count < 0 || prompt.size() > kDemoPromptBytesMax) return std::nullopt;
    prompt.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// What the word `permission` asks for, if that is denied.
std::string denials(std::string_view prompt, const Call& call) {
  const auto kind = demo_wish(prompt).permission;
  const bool reads = kind == "read" || kind == "search";
  if (!kind || call.may_act || (reads && call.may_read)) return "[]";
  return fmt::format(R"([{{"tool_name":"{}","tool_use_id":"demo","tool_input":{{}}}}])", *kind);
}

// The keys that a result of Claude's has, as far as the gateway reads them.
std::string result_line(std::string_view prompt, std::string_view answer, std::string_view denied) {
  std::string line = R"({"type":"result","subtype":"success","is_error":false,"result":)";
  append_json_string(line, answer);
  line += fmt::format(
      R"(,"stop_reason":"end_turn","terminal_reason":"completed","num_turns":1,)"
      R"("total_cost_usd":0,"usage":{{"input_tokens":{},"output_tokens":{},)"
      R"("cache_read_input_tokens":0,"cache_creation_input_tokens":0}},"permission_denials":{}}})",
      prompt.size(), answer.size(), denied);
  return line;
}

int complain(std::string_view sentence) {
  fmt::print(stderr, "demo-agent: {}\n", sentence);
  return 2;
}

}  // namespace

int demo_agent(const std::vector<std::string>& arguments) {
  const Call call = read_arguments(arguments);
  if (!call.mistake.empty()) return complain(call.mistake);
  if (call.is_acp && !call.is_version) {
    const char* temp_dir = std::getenv("TMPDIR");
    return demo_acp(STDIN_FILENO, STDOUT_FILENO, temp_dir ? temp_dir : "/tmp");
  }
  std::string output;
  if (call.is_version) {
    output = fmt::format("{} (clawdforge demo agent)", kVersion);
  } else {
    const auto prompt = read_prompt();
    if (!prompt) return complain("the prompt could not be read, or is too long");
    // A prompt may come with a blank in front of it that keeps it from being a command.
    const std::size_t begin = prompt->find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) return complain("the prompt is empty");
    const std::string_view said = std::string_view(*prompt).substr(begin);
    const std::string answer = "You said: " + valid_utf8(said);
    output = call.is_json ? result_line(*prompt, answer, denials(said, call)) : answer;
  }
  output += '\n';
  const bool is_written = std::fwrite(output.data(), 1, output.size(), stdout) == output.size() &&
                          std::fflush(stdout) == 0;
  return is_written ? 0 : 1;
}

}  // namespace clawdforge
