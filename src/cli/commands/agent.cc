// `clawdforge agent list` and `check`: which agents the gateway has, and whether one
// answers. `agent login` works on the gateway's machine itself (src/doctor/agent_login.cc).
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "cli/commands/agent_question.h"
#include "cli/commands/commands.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

// Only the admin is told where they are.
Asked<GatewayAnswer> fetch_agents(const Invocation& invocation) {
  auto answer = ask(invocation, TokenKind::admin, "GET", "/agents");
  if (answer || answer.error().exit_code != kExitNoToken) return answer;
  return ask(invocation, TokenKind::any, "GET", "/agents");
}

// A cell for each of an agent's programs, separated by commas.
std::string of_programs(const json::object& agent, std::string_view member) {
  const json::array* const programs = list_of(agent, "programs");
  std::string text;
  for (std::size_t i = 0; programs != nullptr && i < programs->size(); ++i) {
    if (!(*programs)[i].is_object()) continue;
    text += (text.empty() ? "" : ", ") + field_of((*programs)[i].get_object(), member);
  }
  return text.empty() ? "-" : text;
}

Done print_agents(Invocation& invocation, const Asked<GatewayAnswer>& answer, bool has_places) {
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  const json::array* const agents = list_of(answer->body, "agents");
  if (agents == nullptr) {
    return complain(kExitFailed, "the answer has no list in it; is it a clawdforge gateway?");
  }
  std::vector<std::string> headings = {"NAME", "PRESENT", "VERSION", "LOGIN"};
  if (has_places) headings.insert(headings.end(), {"WHERE", "TESTED"});
  Table table(headings);
  for (const json::value& value : *agents) {
    if (!value.is_object()) continue;
    const json::object& agent = value.get_object();
    std::vector<std::string> cells = {
        field_of(agent, "name"), field_of(agent, "present"),
        has_places ? of_programs(agent, "version") : field_of(agent, "version"),
        field_of(agent, "login")};
    if (has_places) {
      cells.insert(cells.end(), {of_programs(agent, "path"), of_programs(agent, "trial")});
    }
    table.add(std::move(cells));
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done list_agents(Invocation& invocation) {
  const auto answer = fetch_agents(invocation);
  const json::array* const agents = answer ? list_of(answer->body, "agents") : nullptr;
  const bool has_places = agents != nullptr && !agents->empty() && agents->front().is_object() &&
                          agents->front().get_object().contains("programs");
  return print_agents(invocation, answer, has_places);
}

Done check_agent(Invocation& invocation) {
  const std::string agent = invocation.arguments.word(0);
  const auto begun = std::chrono::steady_clock::now();
  const auto answer = ask_agent(invocation, agent);
  if (!answer) return std::unexpected(answer.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (invocation.as_json()) {
    print_answer(json::serialize(json::object{
        {"agent", agent}, {"answer", *answer}, {"duration_ms", int(took.count() * 1000)}}));
    return 0;
  }
  print_answer(plain_line(*answer));
  fmt::print(stderr, "{} answered in {:.1f} s\n", agent, took.count());
  return 0;
}

}  // namespace

std::vector<Command> agent_commands() {
  constexpr std::string_view kGroup = "Administration";
  return {
      {.name = "agent list",
       .group = kGroup,
       .summary = "the agents: where they are, which version, whether they are logged in",
       .run = list_agents,
       .examples = {"clawdforge agent list"},
       .about =
           "LOGIN is what shows from outside: key (a variable has one), file (the program's own "
           "login is there), missing, not_needed, unknown. TESTED says how the version stands "
           "to those that the gateway was tested with."},
      {.name = "agent check",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "ask an agent one real question",
       .run = check_agent,
       .examples = {"clawdforge agent check claude"},
       .about =
           "Prints its answer. Uses the app token that is there; without one, on the gateway's "
           "machine, an app that is made for it and revoked afterwards.",
       .offers = Offers::agents},
  };
}

}  // namespace clawdforge
