// GET /workspaces.
#pragma once

#include "api/core/endpoint.h"
#include "quota/policies.h"

namespace clawdforge {

class Workspaces;

// An app sees those that it may use. Both outlive the endpoints.
void add_workspace_routes(Endpoints& endpoints, const Workspaces& workspaces,
                          const Policies& policies);

}  // namespace clawdforge
