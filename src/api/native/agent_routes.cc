#include "api/native/agent_routes.h"

#include "json/json_members.h"

namespace clawdforge {
namespace {

Task<Response> list(std::vector<AgentListing> agents) {
  std::string body = R"({"agents":[)";
  for (const AgentListing& agent : agents) {
    body += body.back() == '[' ? R"({"name":)" : R"(,{"name":)";
    append_json_string(body, agent.name);
    append_member(body, "protocol", name_of(agent.protocol));
    append_member(body, "present", agent.is_present);
    append_member(body, "version", agent.version);
    body += '}';
  }
  body += "]}";
  co_return json_response(std::move(body));
}

}  // namespace

void add_agent_routes(Endpoints& endpoints, std::function<std::vector<AgentListing>()> listings,
                      const Policies& policies) {
  endpoints.push_back({"GET", "/agents", Permit::app_or_admin, Body::none,
                       [listings = std::move(listings), of = &policies](Caller caller, Request*) {
                         auto agents = listings();
                         std::erase_if(agents, [&](const AgentListing& agent) {
                           return caller.kind == CallerKind::app &&
                                  !allows_agent(of->of(*caller.app, agent.name), agent.name);
                         });
                         return list(std::move(agents));
                       }});
}

}  // namespace clawdforge
