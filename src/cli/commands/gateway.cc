// `clawdforge agents`, `health` and `sweep`: the gateway itself.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/core/ask.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

Done agents(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::any, "GET", "/agents");
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"AGENT", "PROTOCOL", "PRESENT", "VERSION", "LOGIN"});
  const json::array* const found = list_of(answer->body, "agents");
  for (const json::value& agent : found == nullptr ? json::array() : *found) {
    if (!agent.is_object()) continue;
    const json::object& row = agent.get_object();
    table.add({field_of(row, "name"), field_of(row, "protocol"),
               field_of(row, "present") == "true" ? "yes" : "no", field_of(row, "version"),
               field_of(row, "login")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done health(Invocation& invocation) {
  return print_fields(invocation, ask(invocation, TokenKind::none, "GET", "/healthz"));
}

Done sweep(Invocation& invocation) {
  return print_fields(invocation, ask(invocation, TokenKind::admin, "POST", "/admin/sweep"));
}

}  // namespace

std::vector<Command> gateway_commands() {
  return {
      {.name = "agents",
       .group = "Asking",
       .summary = "which agents the gateway has",
       .run = agents,
       .examples = {"clawdforge agents"}},
      {.name = "health",
       .group = "Asking",
       .summary = "whether the gateway is well; needs no token",
       .run = health,
       .examples = {"clawdforge health", "clawdforge health --url http://127.0.0.1:8800"}},
      {.name = "sweep",
       .group = "Administration",
       .summary = "close what is idle and remove what has expired, now",
       .run = sweep,
       .examples = {"clawdforge sweep"}},
  };
}

}  // namespace clawdforge
