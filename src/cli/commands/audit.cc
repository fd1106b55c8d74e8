// `clawdforge audit ...`: what all apps did, from the ledger.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/core/ask.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr int kAuditRowsDefault = 50;

// What a column shows: a member of the row, as a time where its name says so.
struct Column {
  std::string heading;
  std::string_view member;
};

std::string audit_target(const Invocation& invocation, std::string_view noun) {
  const Arguments& arguments = invocation.arguments;
  std::string target = fmt::format("/admin/{}?limit={}", noun,
                                   arguments.number("--limit").value_or(kAuditRowsDefault));
  for (const std::string_view name : {"app", "state", "since", "until", "cursor"}) {
    const std::string option = "--" + std::string(name);
    if (arguments.has(option))
      target += fmt::format("&{}={}", name, path_part(arguments.text(option)));
  }
  return target;
}

Done print_rows(const Invocation& invocation, std::string_view noun,
                const std::vector<Column>& columns) {
  const auto answer = ask(invocation, TokenKind::admin, "GET", audit_target(invocation, noun));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  std::vector<std::string> headings;
  for (const Column& column : columns) headings.push_back(column.heading);
  Table table(std::move(headings));
  const json::array* const rows = list_of(answer->body, noun);
  for (const json::value& row : rows == nullptr ? json::array() : *rows) {
    if (!row.is_object()) continue;
    std::vector<std::string> cells;
    for (const Column& column : columns) {
      const bool is_time = column.member == "at" || column.member.ends_with("_at");
      cells.push_back(is_time ? time_of(row.get_object(), column.member)
                              : field_of(row.get_object(), column.member));
    }
    table.add(std::move(cells));
  }
  print_answer(table.text(invocation.screen));
  const std::string next = field_of(answer->body, "next_cursor");
  if (next != "-") fmt::print(stderr, "clawdforge: there is more; --cursor {} goes on.\n", next);
  return 0;
}

Done audit_runs(Invocation& invocation) {
  return print_rows(invocation, "runs",
                    {{"STARTED", "started_at"},
                     {"RUN", "run_id"},
                     {"APP", "app_name"},
                     {"AGENT", "agent"},
                     {"MODEL", "model"},
                     {"OUTCOME", "outcome"},
                     {"MS", "duration_ms"},
                     {"COST USD", "cost_usd"},
                     {"ERROR", "error"}});
}

Done audit_sessions(Invocation& invocation) {
  return print_rows(invocation, "sessions",
                    {{"CREATED", "created_at"},
                     {"SESSION", "session_id"},
                     {"APP", "app_name"},
                     {"AGENT", "agent"},
                     {"TURNS", "turn_count"},
                     {"LAST TURN", "last_turn_at"},
                     {"CLOSED", "closed_at"},
                     {"WHY", "close_reason"},
                     {"COST USD", "cost_usd"}});
}

Done audit_events(Invocation& invocation) {
  return print_rows(invocation, "events",
                    {{"AT", "at"},
                     {"SESSION", "session_id"},
                     {"APP", "app_name"},
                     {"EVENT", "event"},
                     {"META", "meta"}});
}

Done audit_jobs(Invocation& invocation) {
  return print_rows(invocation, "jobs",
                    {{"CREATED", "created_at"},
                     {"JOB", "job_id"},
                     {"APP", "app_name"},
                     {"KIND", "kind"},
                     {"STATE", "state"},
                     {"STATUS", "status"},
                     {"ATTEMPTS", "attempts"},
                     {"STARTED", "started_at"},
                     {"ENDED", "ended_at"}});
}

Done audit_deliveries(Invocation& invocation) {
  return print_rows(invocation, "deliveries",
                    {{"CREATED", "created_at"},
                     {"DELIVERY", "delivery_id"},
                     {"APP", "app_name"},
                     {"TYPE", "type"},
                     {"STATE", "state"},
                     {"ATTEMPTS", "attempts"},
                     {"NEXT", "next_at"},
                     {"URL", "url"},
                     {"ERROR", "last_error"}});
}

std::vector<Option> audit_options() {
  return {{.name = "--app", .value = "NAME", .help = "only of this app", .offers = Offers::tokens},
          {.name = "--since", .value = "TIME", .help = "from this unix time on", .is_number = true},
          {.name = "--until", .value = "TIME", .help = "before this unix time", .is_number = true},
          {.name = "--limit",
           .value = "COUNT",
           .help = "at most so many (default: 50)",
           .is_number = true},
          {.name = "--cursor", .value = "CURSOR", .help = "go on where a page has ended"}};
}

Command audit_command(std::string_view name, std::string_view summary, Done (*run)(Invocation&),
                      std::string_view example) {
  return {.name = name,
          .group = "Administration",
          .summary = summary,
          .run = run,
          .options = audit_options(),
          .examples = {example}};
}

Command with_states(Command command, std::string_view states) {
  command.options.push_back({.name = "--state",
                             .value = "STATE",
                             .help = "only those in this state",
                             .offers = Offers::words,
                             .words = states});
  return command;
}

}  // namespace

std::vector<Command> audit_commands() {
  return {
      audit_command("audit runs", "the runs of all apps, newest first", audit_runs,
                    "clawdforge audit runs --app my-app --since $(date -d yesterday +%s)"),
      audit_command("audit sessions", "the sessions of all apps, newest first", audit_sessions,
                    "clawdforge audit sessions --json | jq '.sessions[].cost_usd'"),
      audit_command("audit events", "what happened to sessions, newest first", audit_events,
                    "clawdforge audit events --limit 10"),
      with_states(audit_command("audit jobs", "the jobs of all apps, newest first", audit_jobs,
                                "clawdforge audit jobs --state queued"),
                  "queued running succeeded failed cancelled interrupted"),
      with_states(audit_command("audit deliveries", "what was told to webhooks, newest first",
                                audit_deliveries, "clawdforge audit deliveries --state dead"),
                  "waiting delivered dead"),
  };
}

}  // namespace clawdforge
