// GET /whoami: what an app is, and what it may ask for.
#pragma once

#include <string>
#include <vector>

#include "api/core/endpoint.h"
#include "quota/policies.h"

namespace clawdforge {

// `agents` are the names of all that are configured. `policies` outlives the endpoints.
void add_whoami_routes(Endpoints& endpoints, const Policies& policies,
                       std::vector<std::string> agents);

}  // namespace clawdforge
