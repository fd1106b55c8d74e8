// `clawdforge job ...`: runs and turns that the gateway does by itself.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/prompt_options.h"
#include "cli/core/table.h"
#include "cli/input/prompting.h"
#include "cli/input/terminal_token.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::string_view kJobs = "Jobs";
constexpr int kJobWaitSecs = 60;  // of one question; the gateway waits no longer

std::string job_path(const Invocation& invocation) {
  return "/jobs/" + path_part(invocation.arguments.word(0));
}

Asked<void> add_job_fields(const Arguments& arguments, json::object& job) {
  if (const auto at = arguments.number("--at")) job["run_at"] = *at;
  if (const auto attempts = arguments.number("--attempts")) job["attempts"] = *attempts;
  if (arguments.has("--webhook")) job["webhook"] = arguments.text("--webhook");
  if (!arguments.has("--meta")) return {};
  json::error_code error;
  job["meta"] = json::parse(arguments.text("--meta"), error);
  if (error || !job["meta"].is_object()) {
    return complain(kExitUsage, R"(--meta takes a JSON object, such as '{"ticket":7}'.)");
  }
  return {};
}

Done submit(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  auto prompt = prompt_of(invocation, 0);
  if (!prompt) return std::unexpected(prompt.error());
  json::object work;
  work["prompt"] = std::move(*prompt);
  const bool is_turn = arguments.has("--session");
  if (is_turn) {
    work["session_id"] = arguments.text("--session");
  } else if (auto added = add_agent_fields(arguments, work); !added) {
    return std::unexpected(added.error());
  }
  if (auto added = add_prompt_fields(invocation, *to, work); !added) {
    return std::unexpected(added.error());
  }
  json::object job;
  if (auto added = add_job_fields(arguments, job); !added) return std::unexpected(added.error());
  job[is_turn ? "turn" : "run"] = std::move(work);
  auto key = key_of(arguments);
  if (!key) return std::unexpected(key.error());
  ClientRequest request;
  request.method = "POST";
  request.target = "/jobs";
  request.idempotency_key = std::move(*key);
  request.body = json::serialize(job);
  const auto answer = ask(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "job_id"));
  return 0;
}

Done list_jobs(Invocation& invocation) {
  std::string target = "/jobs";
  if (invocation.arguments.has("--state")) {
    target += "?state=" + path_part(invocation.arguments.text("--state"));
  }
  const auto answer = ask(invocation, TokenKind::app, "GET", target);
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"JOB", "KIND", "STATE", "STATUS", "ATTEMPTS", "CREATED", "ENDED"});
  const json::array* const jobs = list_of(answer->body, "jobs");
  for (const json::value& job : jobs == nullptr ? json::array() : *jobs) {
    if (!job.is_object()) continue;
    const json::object& row = job.get_object();
    table.add({field_of(row, "job_id"), field_of(row, "kind"), field_of(row, "state"),
               field_of(row, "status"), field_of(row, "attempts"), time_of(row, "created_at"),
               time_of(row, "ended_at")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done show_job(Invocation& invocation) {
  return print_fields(invocation, ask(invocation, TokenKind::app, "GET", job_path(invocation)),
                      "answer");
}

// What the plain call would have printed, and its exit code.
Done print_end(const Invocation& invocation, const GatewayAnswer& job) {
  const std::string state = field_of(job.body, "state");
  const json::value* const answer = job.body.if_contains("answer");
  const json::object* const body = answer == nullptr ? nullptr : answer->if_object();
  if (state == "succeeded") {
    if (invocation.as_json()) {
      print_answer(job.raw.body);
    } else if (body != nullptr) {
      print_answer(plain_text(field_of(*body, body->contains("text") ? "text" : "result")));
    }
    return 0;
  }
  if (invocation.as_json()) print_answer(job.raw.body);
  const json::value* const status = job.body.if_contains("status");
  const bool is_of_caller = status != nullptr && status->is_int64() && status->get_int64() < 500;
  std::string sentence = fmt::format("the job is {}.", state);
  if (body != nullptr && body->contains("detail")) {
    sentence = fmt::format("the job is {}: {}", state, plain_line(field_of(*body, "detail")));
  }
  return complain(is_of_caller || state == "cancelled" ? kExitRefused : kExitFailed,
                  std::move(sentence));
}

Done wait_for(Invocation& invocation) {
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  while (true) {
    ClientRequest request;
    request.method = "GET";
    request.target = job_path(invocation);
    request.prefer = fmt::format("wait={}", kJobWaitSecs);
    const auto answer = ask_and_wait(*to, std::move(request),
                                     {.timeout = std::chrono::seconds(kJobWaitSecs) + kCallMax,
                                      .live_line = "waiting for the job",
                                      .screen = &invocation.screen,
                                      .interrupted = "interrupted: the job goes on; clawdforge "
                                                     "job cancel ends it."});
    if (!answer) return std::unexpected(answer.error());
    const std::string state = field_of(answer->body, "state");
    if (state != "queued" && state != "running") return print_end(invocation, *answer);
  }
}

Done cancel_job(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::app, "DELETE", job_path(invocation));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
  } else {
    print_answer(answer->body.contains("already_ended") ? "it had ended" : "cancelled");
  }
  return 0;
}

std::vector<Option> submit_options() {
  std::vector<Option> options = agent_options();
  for (Option& option : prompt_options()) {
    if (option.name != "--wait") options.push_back(option);  // a job waits in any case
  }
  options.push_back({.name = "--session",
                     .value = "ID",
                     .help = "a turn of this session instead of a run",
                     .offers = Offers::sessions});
  options.push_back({.name = "--at",
                     .value = "SECS",
                     .help = "do not start before this time, in unix seconds",
                     .is_number = true});
  options.push_back({.name = "--attempts",
                     .value = "N",
                     .help = "how often it may be begun, 1 to 5 (default: 1)",
                     .is_number = true});
  options.push_back({.name = "--webhook", .value = "URL", .help = "call this when it has ended"});
  options.push_back(key_option());
  options.push_back({.name = "--meta", .value = "JSON", .help = "an object to keep with it"});
  return options;
}

}  // namespace

std::vector<Command> job_commands() {
  return {
      {.name = "job add",
       .arguments = "[PROMPT]",
       .group = kJobs,
       .summary = "hand a run or a turn to the gateway; prints the job's id",
       .run = submit,
       .options = submit_options(),
       .examples = {"id=$(clawdforge job add --agent demo 'Say hello')",
                    "clawdforge job add --agent demo --at $(date -d tomorrow +%s) 'Good morning'"},
       .about =
           "Without PROMPT, or with -, the prompt is read from standard input. The job is done "
           "also if the gateway is restarted meanwhile."},
      {.name = "job list",
       .group = kJobs,
       .summary = "the jobs of this app, newest first",
       .run = list_jobs,
       .options = {{.name = "--state",
                    .value = "STATE",
                    .help = "only those in this state",
                    .offers = Offers::words,
                    .words = "queued running succeeded failed cancelled interrupted"}},
       .examples = {"clawdforge job list --state queued"}},
      {.name = "job get",
       .arguments = "ID",
       .group = kJobs,
       .summary = "the state of a job; with --json also its answer",
       .run = show_job,
       .examples = {"clawdforge job get $id --json | jq .answer"},
       .offers = Offers::jobs},
      {.name = "job wait",
       .arguments = "ID",
       .group = kJobs,
       .summary = "wait for the end of a job; prints its answer",
       .run = wait_for,
       .examples = {"clawdforge job wait $id"},
       .about =
           "The exit code is that of the plain command: 0 if it went well, 4 or 5 by the status "
           "of its answer. Ctrl-C ends the waiting, not the job.",
       .offers = Offers::jobs},
      {.name = "job cancel",
       .arguments = "ID",
       .group = kJobs,
       .summary = "cancel a job; cancelling it again is not an error",
       .run = cancel_job,
       .examples = {"clawdforge job cancel $id"},
       .offers = Offers::jobs},
  };
}

}  // namespace clawdforge
