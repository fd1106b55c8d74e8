#include "api/admin/whoami_routes.h"

#include <utility>

#include "api/admin/token_fields.h"
#include "browsers/browsers.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

void append_names(std::string& out, std::string_view name, const std::vector<std::string>& names) {
  append_name(out, name);
  out += '[';
  for (const std::string& item : names) {
    if (out.back() != '[') out += ',';
    append_json_string(out, item);
  }
  out += ']';
}

// An effective policy: what no part of it says has its default here.
void append_effective(std::string& out, Policy policy, std::vector<std::string> agents) {
  policy.agents = std::move(agents);
  policy.permission_mode_max = permission_mode_max(policy);
  policy.mcp = mcp_access(policy);
  if (!policy.workspaces) policy.workspaces.emplace();
  // Where things are on the gateway's machine is not for apps to know.
  policy.jail_read.reset();
  policy.jail_write.reset();
  append_policy(out, policy);
}

std::string whoami_json(const App& app, const Policies& policies,
                        const std::vector<std::string>& all_agents) {
  std::vector<std::string> agents;
  for (const std::string& agent : all_agents) {
    if (allows_agent(policies.of(app, agent), agent)) agents.push_back(agent);
  }
  const Policy policy = policies.of(app);
  std::string body = R"({"ok":true,"kind":"app")";
  append_member(body, "name", app.name.str());
  append_limits(body, app);
  append_effective(body, policy, agents);
  const bool has_named = mcp_access(policy) >= McpAccess::named;
  append_names(body, "mcp_servers",
               has_named ? policies.mcp_server_names() : std::vector<std::string>{});
  append_name(body, "agent_policies");
  body += '{';
  for (const std::string& agent : agents) {
    if (!policies.by_agent().contains(agent)) continue;
    append_name(body, agent);
    body += '{';
    append_effective(body, policies.of(app, agent), {agent});
    body += '}';
  }
  return body + "}}";
}

// What a page has to know of the token that it holds.
void append_own_browser(std::string& body, const Browser& browser) {
  body.pop_back();
  append_name(body, "browser");
  body += '{';
  append_member(body, "id", browser.id);
  append_member(body, "name", browser.name);
  append_member(body, "proof_until", browser.proved_at + kProofAgeMax);
  append_member(body, "expires_at", browser.expires_at);
  body += "}}";
}

Task<Response> whoami(const Policies* policies, const std::vector<std::string>* agents,
                      Caller caller) {
  std::string body = caller.kind == CallerKind::admin
                         ? std::string(R"({"ok":true,"kind":"admin"})")
                         : whoami_json(*caller.app, *policies, *agents);
  if (caller.browser) append_own_browser(body, *caller.browser);
  co_return json_response(std::move(body));
}

}  // namespace

void add_whoami_routes(Endpoints& endpoints, const Policies& policies,
                       std::vector<std::string> agents) {
  auto names = std::make_shared<const std::vector<std::string>>(std::move(agents));
  endpoints.push_back({"GET", "/whoami", Permit::app_or_admin, Body::none,
                       [known = &policies, names](Caller caller, Request*) {
                         return whoami(known, names.get(), std::move(caller));
                       }});
}

}  // namespace clawdforge
