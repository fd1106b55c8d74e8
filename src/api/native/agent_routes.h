// GET /agents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/core/endpoint.h"
#include "base/async/async.h"
#include "model/agent.h"
#include "quota/policies.h"

namespace clawdforge {

// What GET /agents tells. Outlives the endpoints.
struct AgentSources {
  std::function<std::vector<AgentListing>()> listings;      // asked on the io thread
  std::function<Task<std::vector<AgentReport>>()> reports;  // likewise; empty: not known now
  int uid = 0;                                              // of the gateway's user
};

// An app sees those that it may use; only the admin sees where they are. `policies` outlives the
// endpoints.
void add_agent_routes(Endpoints& endpoints, AgentSources sources, const Policies& policies);

}  // namespace clawdforge
