// GET /agents.
#pragma once

#include <functional>
#include <vector>

#include "api/core/endpoint.h"
#include "model/agent.h"
#include "quota/policies.h"

namespace clawdforge {

// `listings` is asked for every request, on the io thread. An app sees those that it may use.
// `policies` outlives the endpoints.
void add_agent_routes(Endpoints& endpoints, std::function<std::vector<AgentListing>()> listings,
                      const Policies& policies);

}  // namespace clawdforge
