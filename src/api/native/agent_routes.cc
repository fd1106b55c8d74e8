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

void append_names(std::string& body, std::string_view key, const std::vector<std::string>& names) {
  append_name(body, key);
  body += '[';
  for (const std::string& name : names) {
    if (body.back() != '[') body += ',';
    append_json_string(body, name);
  }
  body += ']';
}

// Where things are on the gateway's machine, and how its owner logs in: for the admin.
void append_places(std::string& body, const AgentReport& report) {
  append_programs(body, report.programs);
  append_member(body, "login_place", unless_empty(report.login_place));
  append_names(body, "login_command", report.login_command);
  append_name(body, "login_environment");
  body += '{';
  for (const auto& [name, value] : report.login_environment) append_member(body, name, value);
  body += '}';
}

std::string version_of(const AgentListing& agent, const AgentReport* report) {
  if (!agent.version.empty() || report == nullptr || report->programs.empty()) return agent.version;
  return agent.is_present ? report->programs.back().version : std::string();
}

struct Listed {
  AgentListing agent;
  AgentJail jail;
};

Task<Response> list(std::vector<Listed> agents, bool is_admin, const AgentSources* sources) {
  const std::vector<AgentReport> reports = co_await sources->reports();
  std::string body = R"({"agents":[)";
  for (const auto& [agent, jail] : agents) {
    const auto found = std::ranges::find(reports, agent.name, &AgentReport::name);
    const AgentReport* const report = found == reports.end() ? nullptr : &*found;
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "name", agent.name);
    append_member(body, "protocol", name_of(agent.protocol));
    append_member(body, "present", agent.is_present);
    append_member(body, "version", version_of(agent, report));
    append_member(body, "default_model", unless_empty(agent.default_model));
    append_names(body, "models", agent.models);
    append_names(body, "efforts", agent.efforts);
    std::vector<std::string> modes;
    for (const PermissionMode mode : agent.modes) modes.emplace_back(name_of(mode));
    append_names(body, "permission_modes", modes);
    append_member(body, "login", name_of(report == nullptr ? LoginState::unknown : report->login));
    append_member(body, "login_state", sources->login_state(agent.name));
    append_member(body, "warm", agent.spares > 0);
    if (is_admin) {
      append_member(body, "spares", static_cast<std::int64_t>(agent.spares));
      append_member(body, "memory_bytes", static_cast<std::int64_t>(agent.memory_bytes));
    }
    append_member(body, "jail", jail.means);
    append_member(body, "net", name_of(jail.net));
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
                         const App none;
                         const App& app = is_admin ? none : *caller.app;
                         std::vector<Listed> agents;
                         for (AgentListing& agent : kept->listings()) {
                           const Policy policy = of->of(app, agent.name);
                           if (!is_admin && !allows_agent(policy, agent.name)) continue;
                           agents.push_back({std::move(agent), kept->jail_of(policy)});
                         }
                         return list(std::move(agents), is_admin, kept.get());
                       }});
}

}  // namespace clawdforge
