// GET /agents.
#pragma once

#include <functional>
#include <vector>

#include "api/core/endpoint.h"
#include "model/agent.h"

namespace clawdforge {

// `listings` is asked for every request, on the io thread.
void add_agent_routes(Endpoints& endpoints, std::function<std::vector<AgentListing>()> listings);

}  // namespace clawdforge
