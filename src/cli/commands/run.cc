// `clawdforge run` and `clawdforge upload`: one prompt, one answer, and the files for it.
#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/core/uploading.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::size_t kPromptBytesMax = 64 * 1024 * 1024;  // the gateway's own limit is lower
constexpr std::chrono::seconds kTimeoutDefault{3600};      // the gateway ends it before
constexpr std::chrono::seconds kAnswerGrace{30};           // on top of the run's own time

Asked<std::string> read_standard_input() {
  std::string text;
  std::array<char, 64 * 1024> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), stdin)) {
    text.append(piece.data(), count);
    if (text.size() > kPromptBytesMax) return complain(kExitUsage, "the prompt is too long.");
  }
  return text;
}

json::object run_body(const Arguments& arguments, std::string prompt) {
  json::object body;
  body["prompt"] = std::move(prompt);
  for (const char* name : {"agent", "model", "system", "effort"}) {
    const std::string option = std::string("--") + name;
    if (arguments.has(option)) body[name] = arguments.text(option);
  }
  if (const auto secs = arguments.number("--timeout")) body["timeout_secs"] = *secs;
  return body;
}

Done run(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  std::string prompt = arguments.word(0);
  if (prompt.empty() || prompt == "-") {
    auto read = read_standard_input();
    if (!read) return std::unexpected(read.error());
    prompt = std::move(*read);
  }
  json::object body = run_body(arguments, std::move(prompt));
  json::array files;
  for (const std::string& file : arguments.all("--file")) {
    if (file.starts_with("ff_")) {
      files.emplace_back(json::string(file));
      continue;
    }
    const auto brought = upload_file(*to, file);
    if (!brought) return std::unexpected(brought.error());
    files.emplace_back(json::string(field_of(brought->body, "file_token")));
  }
  if (!files.empty()) body["files"] = std::move(files);
  ClientRequest request;
  request.method = "POST";
  request.target = "/run";
  request.body = json::serialize(body);
  const auto secs = arguments.number("--timeout");
  const auto answer = ask(*to, std::move(request),
                          (secs ? std::chrono::seconds(*secs) : kTimeoutDefault) + kAnswerGrace);
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "result"));
  return 0;
}

Done upload(Invocation& invocation) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  const auto answer =
      upload_file(*to, invocation.arguments.word(0), invocation.arguments.number("--ttl"));
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "file_token"));
  return 0;
}

}  // namespace

std::vector<Command> run_commands() {
  return {
      {.name = "run",
       .arguments = "[PROMPT]",
       .group = "Asking",
       .summary = "one prompt, one answer",
       .run = run,
       .options = {{.name = "--agent",
                    .value = "NAME",
                    .help = "which agent answers (default: claude)",
                    .offers = Offers::agents},
                   {.name = "--model", .value = "NAME", .help = "the agent's model"},
                   {.name = "--system", .value = "TEXT", .help = "a system prompt"},
                   {.name = "--effort",
                    .value = "LEVEL",
                    .help = "low, medium, high, xhigh or max",
                    .offers = Offers::words,
                    .words = "low medium high xhigh max"},
                   {.name = "--timeout",
                    .value = "SECS",
                    .help = "how long it may take",
                    .is_number = true,
                    .also = "--timeout-secs"},
                   {.name = "--file",
                    .value = "PATH",
                    .help = "a file to go with the prompt, or the token of one that is there "
                            "already; may be repeated",
                    .repeats = true,
                    .offers = Offers::files}},
       .examples = {"clawdforge run --agent demo Hello",
                    "git diff | clawdforge run --system 'Review this change.'",
                    "clawdforge run --file notes.txt 'Summarise the file'"},
       .about = "Without PROMPT, or with -, the prompt is read from standard input."},
      {.name = "upload",
       .arguments = "FILE",
       .group = "Asking",
       .summary = "bring a file; prints its token",
       .run = upload,
       .options = {{.name = "--ttl",
                    .value = "SECS",
                    .help = "how long it is kept, 60 to 86400 (default: 3600)",
                    .is_number = true,
                    .also = "--ttl-secs"}},
       .examples = {"clawdforge upload notes.txt --ttl 600"},
       .offers = Offers::files},
  };
}

}  // namespace clawdforge
