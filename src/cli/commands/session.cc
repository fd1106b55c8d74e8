// `clawdforge session ...`: conversations, for scripts. `chat` is for people.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/follow.h"
#include "cli/commands/prompt_options.h"
#include "cli/core/table.h"
#include "cli/input/prompting.h"
#include "cli/input/terminal_token.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::string_view kSessions = "Sessions";

std::string session_path(const Invocation& invocation, std::string_view rest = {}) {
  return fmt::format("/sessions/{}{}", path_part(invocation.arguments.word(0)), rest);
}

// Prints all of it with --json, else this member.
Done print_member(const Invocation& invocation, const Asked<GatewayAnswer>& answer,
                  std::string_view name) {
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : plain_text(field_of(answer->body, name)));
  return 0;
}

Done new_session(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  json::object body;
  if (auto added = add_agent_fields(arguments, body); !added) return std::unexpected(added.error());
  if (arguments.has("--permission")) body["permission_mode"] = arguments.text("--permission");
  if (arguments.has("--meta")) {
    json::error_code error;
    body["meta"] = json::parse(arguments.text("--meta"), error);
    if (error || !body["meta"].is_object()) {
      return complain(kExitUsage, R"(--meta takes a JSON object, such as '{"ticket":7}'.)");
    }
  }
  ClientRequest request;
  request.method = "POST";
  request.target = "/sessions";
  request.body = json::serialize(body);
  return print_member(
      invocation,
      ask_and_wait(*to, std::move(request),
                   {.timeout = answer_wait(arguments),
                    .live_line = "starting " + (body.contains("agent") ? field_of(body, "agent")
                                                                       : std::string("claude")),
                    .screen = &invocation.screen,
                    .interrupted = "cancelled: no session was made."}),
      "session_id");
}

Complaint cancel_turn(const Invocation& invocation, const Destination& to) {
  ClientRequest request;
  request.method = "POST";
  request.target = session_path(invocation, "/cancel");
  const auto answer = ask(to, std::move(request));
  const bool is_cancelled = answer && field_of(answer->body, "cancelled") == "true";
  return {kExitInterrupted,
          is_cancelled ? "cancelled: the turn has ended, and the session goes on."
                       : "interrupted; the turn could not be cancelled, clawdforge session get "
                         "tells whether it still runs.",
          {}};
}

Done turn(Invocation& invocation) {
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  auto prompt = prompt_of(invocation, 1);
  if (!prompt) return std::unexpected(prompt.error());
  json::object body;
  body["prompt"] = std::move(*prompt);
  if (auto added = add_prompt_fields(invocation, *to, body); !added) {
    return std::unexpected(added.error());
  }
  ClientRequest request;
  request.method = "POST";
  request.target = session_path(invocation, "/turn");
  request.body = json::serialize(body);
  const auto answer = ask_and_wait(*to, std::move(request),
                                   {.timeout = answer_wait(invocation.arguments),
                                    .live_line = "asking",
                                    .screen = &invocation.screen});
  if (!answer && answer.error().exit_code == kExitInterrupted) {
    return std::unexpected(cancel_turn(invocation, *to));
  }
  return print_member(invocation, answer, "text");
}

Done get(Invocation& invocation) {
  return print_fields(invocation, ask(invocation, TokenKind::app, "GET", session_path(invocation)));
}

Done list_sessions(Invocation& invocation) {
  const bool has_closed = invocation.arguments.has("--closed");
  const auto answer = ask(invocation, TokenKind::app, "GET",
                          has_closed ? "/sessions?include_closed=true" : "/sessions");
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"SESSION", "AGENT", "MODEL", "STATE", "TURNS", "CREATED", "LAST TURN"});
  const json::array* const sessions = list_of(answer->body, "sessions");
  for (const json::value& session : sessions == nullptr ? json::array() : *sessions) {
    if (!session.is_object()) continue;
    const json::object& row = session.get_object();
    const bool is_closed = field_of(row, "closed_at") != "-";
    const std::string state = is_closed                         ? "closed"
                              : field_of(row, "busy") == "true" ? "busy"
                              : field_of(row, "live") == "true" ? "live"
                                                                : "asleep";
    table.add({field_of(row, "session_id"), field_of(row, "agent"), field_of(row, "model"), state,
               field_of(row, "turn_count"), time_of(row, "created_at"),
               time_of(row, "last_turn_at")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done cancel(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::app, "POST", session_path(invocation, "/cancel"));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
  } else {
    const bool is_cancelled = field_of(answer->body, "cancelled") == "true";
    print_answer(is_cancelled ? "cancelled" : "no turn was running");
  }
  return 0;
}

// The parts of a path one by one: the slashes between them stay.
std::string file_path_of(const Invocation& invocation, std::string_view path) {
  std::string target = session_path(invocation, "/files");
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) target += "/" + path_part(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return target;
}

Done get_file(Invocation& invocation) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  ClientRequest request;
  request.method = "GET";
  request.target = file_path_of(invocation, invocation.arguments.text("--get"));
  const auto answer = ask_raw(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (answer->status >= 400) return std::unexpected(complaint_of(*answer));
  std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
  return 0;
}

Done files(Invocation& invocation) {
  if (invocation.arguments.has("--get")) return get_file(invocation);
  const auto answer = ask(invocation, TokenKind::app, "GET", session_path(invocation, "/files"));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"PATH", "BYTES", "CHANGED"});
  const json::array* const found = list_of(answer->body, "files");
  for (const json::value& file : found == nullptr ? json::array() : *found) {
    if (!file.is_object()) continue;
    const json::object& row = file.get_object();
    table.add({field_of(row, "path"), field_of(row, "size"), time_of(row, "modified_at")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done close_session(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::app, "DELETE", session_path(invocation));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) print_answer(answer->raw.body);
  return 0;
}

std::vector<Option> new_options() {
  std::vector<Option> options = agent_options();
  options.push_back({.name = "--permission",
                     .value = "MODE",
                     .help = "what its tools may do: deny_all, approve_reads, ask or approve_all",
                     .offers = Offers::words,
                     .words = "deny_all approve_reads ask approve_all"});
  options.push_back({.name = "--meta", .value = "JSON", .help = "an object to keep with it"});
  return options;
}

// What is said in a session.
std::vector<Command> talk_commands() {
  return {
      {.name = "session new",
       .group = kSessions,
       .summary = "begin a conversation; prints its id",
       .run = new_session,
       .options = new_options(),
       .examples = {"id=$(clawdforge session new --agent demo)"}},
      {.name = "session turn",
       .arguments = "ID [PROMPT]",
       .group = kSessions,
       .summary = "one prompt in a conversation; prints the answer's text",
       .run = turn,
       .options = prompt_options(),
       .examples = {"clawdforge session turn $id 'remember the number 42'",
                    "git diff | clawdforge session turn $id"},
       .about = "Without PROMPT, or with -, the prompt is read from standard input. Ctrl-C cancels "
                "the turn; the session goes on.",
       .offers = Offers::sessions},
      {.name = "session get",
       .arguments = "ID",
       .group = kSessions,
       .summary = "the state of a session",
       .run = get,
       .examples = {"clawdforge session get $id --json | jq .busy"},
       .offers = Offers::sessions},
      {.name = "session list",
       .group = kSessions,
       .summary = "the sessions of this app, newest first",
       .run = list_sessions,
       .options = {{.name = "--closed", .help = "closed ones, too", .also = "--include-closed"}},
       .examples = {"clawdforge session list --closed"}},
  };
}

// What is looked at and ended.
std::vector<Command> read_commands() {
  return {
      {.name = "session events",
       .arguments = "ID",
       .group = kSessions,
       .summary = "what was said in a session, one event a line",
       .run = session_events,
       .options = event_options(),
       .examples = {"clawdforge session events $id --json | jq .event",
                    "clawdforge session events $id --follow --after 7"},
       .about =
           "Each line has the event's number, its name and its data. With --follow it goes on "
           "with what comes, until the session is closed; lost connections and restarts of the "
           "gateway are healed, and no event is lost.",
       .offers = Offers::sessions},
      {.name = "session cancel",
       .arguments = "ID",
       .group = kSessions,
       .summary = "cancel the turn that runs",
       .run = cancel,
       .examples = {"clawdforge session cancel $id"},
       .offers = Offers::sessions},
      {.name = "session files",
       .arguments = "ID",
       .group = kSessions,
       .summary = "the files in a session's directory, or one of them",
       .run = files,
       .options = {{.name = "--get",
                    .value = "PATH",
                    .help = "write this file to standard output"}},
       .examples = {"clawdforge session files $id",
                    "clawdforge session files $id --get a.txt > a.txt"},
       .offers = Offers::sessions},
      {.name = "session close",
       .arguments = "ID",
       .group = kSessions,
       .summary = "end a session; closing it again is not an error",
       .run = close_session,
       .examples = {"clawdforge session close $id"},
       .offers = Offers::sessions},
  };
}

}  // namespace

std::vector<Command> session_commands() {
  std::vector<Command> commands = talk_commands();
  for (Command& command : read_commands()) commands.push_back(std::move(command));
  return commands;
}

}  // namespace clawdforge
