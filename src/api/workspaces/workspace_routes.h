// GET /workspaces.
#pragma once

#include <functional>
#include <vector>

#include "api/core/endpoint.h"
#include "base/async/async.h"
#include "quota/policies.h"
#include "workspaces/workspace_records.h"

namespace clawdforge {

using ListWorkspaces = std::function<Async<std::vector<WorkspaceListing>>()>;

// An app sees those that it may use. `policies` outlives the endpoints.
void add_workspace_routes(Endpoints& endpoints, ListWorkspaces workspaces,
                          const Policies& policies);

}  // namespace clawdforge
