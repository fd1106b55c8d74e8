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

void add_agent_routes(Endpoints& endpoints, std::function<std::vector<AgentListing>()> listings) {
  endpoints.push_back(
      {"GET", "/agents", Permit::app_or_admin, Body::none,
       [listings = std::move(listings)](Caller, Request*) { return list(listings()); }});
}

}  // namespace clawdforge
