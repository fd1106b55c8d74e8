// GET /agents.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/core/endpoint.h"
#include "base/async/async.h"
#include "model/agent.h"
#include "quota/policies.h"

namespace clawdforge {

struct AgentJail {
  std::string_view means;  // own_root, landlock or none
  NetMode net = NetMode::open;
};

// What GET /agents tells. Outlives the endpoints.
struct AgentSources {
  std::function<std::vector<AgentListing>()> listings;      // asked on the io thread
  std::function<Task<std::vector<AgentReport>>()> reports;  // likewise; empty: not known now
  int uid = 0;                                              // of the gateway's user
  // What an agent with this effective policy is kept by, and which network it has.
  std::function<AgentJail(const Policy& policy)> jail_of = {};
  // How the login stands that is kept for an agent; none: none is.
  std::function<std::optional<std::string>(std::string_view agent)> login_state;
};

// An app sees those that it may use; only the admin sees where they are. `policies` outlives the
// endpoints.
void add_agent_routes(Endpoints& endpoints, AgentSources sources, const Policies& policies);

}  // namespace clawdforge
