#include "cli/commands/prompt_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/core/uploading.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kAnswerWaitMax{3600};  // the gateway ends it before
constexpr std::chrono::seconds kAnswerGrace{30};      // on top of the time that was asked for
constexpr std::size_t kKeyBytesMax = 255;
constexpr std::uintmax_t kSystemBytesMax = 16 * 1024 * 1024;

// A text, or the file of that name.
Asked<std::string> system_prompt(const std::string& given) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(given, error)) return given;
  if (std::filesystem::file_size(given, error) > kSystemBytesMax) {
    return complain(kExitUsage, fmt::format("{} is too large for a system prompt.", given));
  }
  std::ifstream file(given, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return complain(kExitUsage, fmt::format("{} cannot be read.", given));
  return text;
}

}  // namespace

std::vector<Option> agent_options() {
  return {{.name = "--agent",
           .value = "NAME",
           .help = "which agent answers (default: claude); clawdforge agents lists them",
           .offers = Offers::agents},
          {.name = "--model", .value = "NAME", .help = "the agent's model"},
          {.name = "--system",
           .value = "TEXT",
           .help = "a system prompt, or the name of a file that holds it",
           .offers = Offers::files},
          {.name = "--effort",
           .value = "LEVEL",
           .help = "low, medium, high, xhigh or max",
           .offers = Offers::words,
           .words = "low medium high xhigh max"},
          {.name = "--workspace",
           .value = "NAME",
           .help = "the workspace that it works on; clawdforge workspace list shows them",
           .offers = Offers::workspaces}};
}

std::vector<Option> prompt_options() {
  return {
      {.name = "--timeout",
       .value = "SECS",
       .help = "how long it may take",
       .is_number = true,
       .also = "--timeout-secs"},
      {.name = "--file",
       .value = "PATH",
       .help = "a file to go with the prompt, or the token of one that upload has brought; may "
               "be repeated",
       .repeats = true,
       .offers = Offers::files},
      {.name = "--wait", .help = "wait for a limit of the app to end instead of being refused"}};
}

Option key_option() {
  return {.name = "--key",
          .value = "KEY",
          .help = "do it once, however often it is sent with this key"};
}

Asked<std::string> key_of(const Arguments& arguments) {
  if (!arguments.has("--key")) return std::string();
  std::string key = arguments.text("--key");
  const bool is_good = !key.empty() && key.size() <= kKeyBytesMax &&
                       std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; });
  if (is_good) return key;
  return complain(kExitUsage, fmt::format("--key takes 1 to {} printable ASCII characters without "
                                          "blanks, such as a UUID.",
                                          kKeyBytesMax));
}

Asked<void> add_agent_fields(const Arguments& arguments, json::object& body) {
  for (const char* name : {"agent", "model", "effort", "workspace"}) {
    const std::string option = std::string("--") + name;
    if (arguments.has(option)) body[name] = arguments.text(option);
  }
  if (!arguments.has("--system")) return {};
  auto system = system_prompt(arguments.text("--system"));
  if (!system) return std::unexpected(system.error());
  body["system"] = std::move(*system);
  return {};
}

std::chrono::seconds answer_wait(const Arguments& arguments) {
  const auto secs = arguments.number("--timeout");
  return (secs ? std::chrono::seconds(*secs) : kAnswerWaitMax) + kAnswerGrace;
}

Asked<void> add_prompt_fields(const Invocation& invocation, const Destination& to,
                              json::object& body) {
  const Arguments& arguments = invocation.arguments;
  if (const auto secs = arguments.number("--timeout")) body["timeout_secs"] = *secs;
  if (arguments.has("--wait")) body["wait"] = true;
  auto files = bring_files(to, arguments.all("--file"));
  if (!files) return std::unexpected(files.error());
  if (!files->empty()) body["files"] = std::move(*files);
  return {};
}

void print_costs(const Screen& screen, const std::string& text) {
  if (!screen.has_live_lines) return;
  fmt::print(stderr, "{}\n", styled(screen, Style::dim, fitted(text, screen.columns)));
}

}  // namespace clawdforge
