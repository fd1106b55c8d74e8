// `clawdforge run` and `clawdforge upload`: one prompt, one answer, and the files for it.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ranges>

#include "cli/commands/commands.h"
#include "cli/commands/prompt_options.h"
#include "cli/core/ask.h"
#include "cli/core/uploading.h"
#include "cli/input/prompting.h"
#include "cli/input/terminal_token.h"
#include "client/event_parser.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

std::string agent_in(const json::object& body) {
  return body.contains("agent") ? field_of(body, "agent") : "claude";
}

void print_run_costs(const Screen& screen, const std::string& agent, const GatewayAnswer& answer) {
  const json::value* const duration = answer.body.if_contains("duration_ms");
  const double seconds =
      duration != nullptr && duration->is_int64() ? double(duration->get_int64()) / 1000 : 0;
  print_costs(screen,
              plain_line(fmt::format("{} · {:.1f} s · {} tokens in, {} out · ${}", agent, seconds,
                                     answer.raw.header("X-Clawdforge-Input-Tokens"),
                                     answer.raw.header("X-Clawdforge-Output-Tokens"),
                                     answer.raw.header("X-Clawdforge-Cost-Usd"))));
}

constexpr std::uintmax_t kSchemaFileBytesMax = 64 * 1024;

Asked<json::value> schema_in(const std::string& path) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kSchemaFileBytesMax && !error) {
    return complain(kExitUsage, fmt::format("{} is too large for a schema.", path));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  json::error_code wrong;
  json::value schema = json::parse(text, wrong);
  if (!file || wrong || !schema.is_object()) {
    return complain(kExitUsage, fmt::format("{} is not a file with a JSON Schema in it.", path));
  }
  return schema;
}

// What only a run can be asked for.
Asked<void> add_run_fields(const Arguments& arguments, json::object& body) {
  if (const auto turns = arguments.number("--max-turns")) body["max_turns"] = *turns;
  if (arguments.has("--tools")) {
    const std::string tools = arguments.text("--tools");
    if (tools == "none" || tools == "read" || tools == "all") {
      body["tools"] = tools;
    } else {
      json::array names;
      for (const auto name : std::views::split(tools, ',')) {
        names.emplace_back(std::string_view(name.begin(), name.end()));
      }
      body["tools"] = std::move(names);
    }
  }
  if (!arguments.has("--schema")) return {};
  auto schema = schema_in(arguments.text("--schema"));
  if (!schema) return std::unexpected(schema.error());
  body["schema"] = std::move(*schema);
  return {};
}

// What an update adds to the agent's words; empty: nothing.
std::string words_in(std::string_view update) {
  json::error_code error;
  const json::value message = json::parse({update.data(), update.size()}, error);
  if (error) return {};
  const auto word_at = [&](std::string_view pointer) -> std::string_view {
    const json::value* const found = message.find_pointer(pointer, error);
    return found != nullptr && found->is_string() ? std::string_view(found->get_string())
                                                  : std::string_view();
  };
  if (word_at("/params/update/sessionUpdate") != "agent_message_chunk") return {};
  return std::string(word_at("/params/update/content/text"));
}

// Prints what comes, as it comes, and keeps how it ended.
class RunPrinter {
 public:
  explicit RunPrinter(bool as_json) : as_json_(as_json) {}

  void take(const ServerEvent& event) {
    if (event.name == "failed") failure_ = event.data;
    is_over_ = is_over_ || event.name == "done" || event.name == "failed";
    if (as_json_) {
      print_answer(fmt::format(R"({{"id":{},"event":"{}","data":{}}})", event.id.value_or(0),
                               event.name, event.data));
    } else if (event.name == "update") {
      const std::string words = plain_text(words_in(event.data));
      std::fwrite(words.data(), 1, words.size(), stdout);
      if (!words.empty()) is_line_open_ = words.back() != '\n';
    }
    // Without a reader of standard output there is nothing left to do: the gateway ends the run.
    if (std::fflush(stdout) != 0) std::_Exit(kExitNoAnswer);
  }

  Done end(const Destination& to) const {
    if (is_line_open_) print_answer("");
    if (!failure_.empty()) {
      return std::unexpected(complaint_of({.status = 502, .body = failure_, .headers = {}}));
    }
    if (is_over_) return 0;
    return complain(kExitNoAnswer, "the connection was lost before the run had ended.", to.url);
  }

 private:
  const bool as_json_;
  bool is_line_open_ = false;
  bool is_over_ = false;
  std::string failure_;  // the body of the failure; empty: none
};

Done stream_run(const Invocation& invocation, const Destination& to, ClientRequest request) {
  constexpr std::chrono::seconds kSilenceMax{45};  // the gateway gives a sign every few seconds
  // The connection ends with the process, and the run with the connection.
  std::signal(SIGINT, [](int) { std::_Exit(kExitInterrupted); });
  request.accept = "text/event-stream";
  request.token = Secret(std::string(to.token.reveal()));
  RunPrinter printer(invocation.as_json());
  StreamCall call;
  EventParser parser;
  const auto feed = [&](std::string_view piece) {
    if (!parser.feed(piece, [&](const ServerEvent& event) { printer.take(event); })) call.stop();
  };
  const auto answer = call.run(to.address, request, feed, kSilenceMax);
  if (answer && answer->status >= 400) return std::unexpected(complaint_of(*answer));
  return printer.end(to);
}

Done run(Invocation& invocation) {
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  auto prompt = prompt_of(invocation, 0);
  if (!prompt) return std::unexpected(prompt.error());
  json::object body;
  body["prompt"] = std::move(*prompt);
  if (auto added = add_agent_fields(invocation.arguments, body); !added) {
    return std::unexpected(added.error());
  }
  if (auto added = add_prompt_fields(invocation, *to, body); !added) {
    return std::unexpected(added.error());
  }
  if (auto added = add_run_fields(invocation.arguments, body); !added) {
    return std::unexpected(added.error());
  }
  auto key = key_of(invocation.arguments);
  if (!key) return std::unexpected(key.error());
  const std::string agent = agent_in(body);
  ClientRequest request;
  request.method = "POST";
  request.target = "/run";
  request.body = json::serialize(body);
  request.idempotency_key = std::move(*key);
  if (invocation.arguments.has("--stream")) {
    return stream_run(invocation, *to, std::move(request));
  }
  const auto answer = ask_and_wait(*to, std::move(request),
                                   {.timeout = answer_wait(invocation.arguments),
                                    .live_line = "asking " + agent,
                                    .screen = &invocation.screen,
                                    .interrupted = "cancelled: the gateway ends the run."});
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  print_run_costs(invocation.screen, agent, *answer);
  print_answer(plain_text(field_of(answer->body, "result")));
  return 0;
}

Done upload(Invocation& invocation) {
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  const auto answer =
      upload_file(*to, invocation.arguments.word(0), invocation.arguments.number("--ttl"));
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "file_token"));
  return 0;
}

std::vector<Option> run_options() {
  std::vector<Option> options = agent_options();
  for (Option& option : prompt_options()) options.push_back(option);
  options.push_back({.name = "--stream", .help = "print the agent's words as they come"});
  options.push_back({.name = "--schema",
                     .value = "FILE",
                     .help = "a JSON Schema that the answer must meet",
                     .offers = Offers::files});
  options.push_back(
      {.name = "--tools",
       .value = "WHICH",
       .help = "the tools that the agent has: none, read, all, or names with commas"});
  options.push_back({.name = "--max-turns",
                     .value = "N",
                     .help = "how often the agent may ask its model",
                     .is_number = true});
  options.push_back(key_option());
  return options;
}

}  // namespace

std::vector<Command> run_commands() {
  return {
      {.name = "run",
       .arguments = "[PROMPT]",
       .group = "Asking",
       .summary = "one prompt, one answer",
       .run = run,
       .options = run_options(),
       .examples = {"clawdforge run --agent demo Hello",
                    "git diff | clawdforge run --system 'Review this change.'",
                    "clawdforge run --agent demo --file notes.txt 'Summarise the file'",
                    "clawdforge run --agent demo --stream Hello"},
       .about = "Without PROMPT, or with -, the prompt is read from standard input. Files are "
                "uploaded on the way. Ctrl-C cancels."},
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
