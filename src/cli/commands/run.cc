// `clawdforge run` and `clawdforge upload`: one prompt, one answer, and the files for it.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/prompt_options.h"
#include "cli/core/uploading.h"
#include "cli/input/prompting.h"
#include "cli/input/terminal_token.h"

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
  auto key = key_of(invocation.arguments);
  if (!key) return std::unexpected(key.error());
  const std::string agent = agent_in(body);
  ClientRequest request;
  request.method = "POST";
  request.target = "/run";
  request.body = json::serialize(body);
  request.idempotency_key = std::move(*key);
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
                    "clawdforge run --agent demo --file notes.txt 'Summarise the file'"},
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
