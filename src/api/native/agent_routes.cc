#include "api/native/agent_routes.h"

#include <algorithm>
#include <memory>

#include "json/json_members.h"

namespace clawdforge {
namespace {

void append_programs(std::string& body, const std::vector<ProgramReport>& programs) {
  append_name(body, "programs");
  body += '[';
  for (const ProgramReport& program : programs) {
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "use", program.use);
    append_member(body, "name", program.name);
    append_member(body, "path", unless_empty(program.path));
    append_member(body, "version", program.version);
    append_member(body, "trial", name_of(program.trial));
    append_member(body, "package", unless_empty(program.facts.package));
    body += '}';
  }
  body += ']';
}

// Where things are on the gateway's machine, and how its owner logs in: for the admin.
void append_places(std::string& body, const AgentReport& report) {
  append_programs(body, report.programs);
  append_member(body, "login_place", unless_empty(report.login_place));
  append_name(body, "login_command");
  body += '[';
  for (const std::string& word : report.login_command) {
    if (body.back() != '[') body += ',';
    append_json_string(body, word);
  }
  body += ']';
  append_name(body, "login_environment");
  body += '{';
  for (const auto& [name, value] : report.login_environment) append_member(body, name, value);
  body += '}';
}

std::string version_of(const AgentListing& agent, const AgentReport* report) {
  if (!agent.version.empty() || report == nullptr || report->programs.empty()) return agent.version;
  return agent.is_present ? report->programs.back().version : std::string();
}

Task<Response> list(std::vector<AgentListing> agents, bool is_admin, const AgentSources* sources) {
  const std::vector<AgentReport> reports = co_await sources->reports();
  std::string body = R"({"agents":[)";
  for (const AgentListing& agent : agents) {
    const auto found = std::ranges::find(reports, agent.name, &AgentReport::name);
    const AgentReport* const report = found == reports.end() ? nullptr : &*found;
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "name", agent.name);
    append_member(body, "protocol", name_of(agent.protocol));
    append_member(body, "present", agent.is_present);
    append_member(body, "version", version_of(agent, report));
    append_member(body, "login", name_of(report == nullptr ? LoginState::unknown : report->login));
    if (is_admin && report != nullptr) append_places(body, *report);
    body += '}';
  }
  body += ']';
  if (is_admin) append_member(body, "uid", sources->uid);
  body += '}';
  co_return json_response(std::move(body));
}

}  // namespace

void add_agent_routes(Endpoints& endpoints, AgentSources sources, const Policies& policies) {
  const auto kept = std::make_shared<const AgentSources>(std::move(sources));
  endpoints.push_back({"GET", "/agents", Permit::app_or_admin, Body::none,
                       [kept, of = &policies](Caller caller, Request*) {
                         const bool is_admin = caller.kind != CallerKind::app;
                         auto agents = kept->listings();
                         std::erase_if(agents, [&](const AgentListing& agent) {
                           return !is_admin &&
                                  !allows_agent(of->of(*caller.app, agent.name), agent.name);
                         });
                         return list(std::move(agents), is_admin, kept.get());
                       }});
}

}  // namespace clawdforge
