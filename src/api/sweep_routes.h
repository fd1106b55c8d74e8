// /admin/sweep.
#pragma once

#include "api/endpoint.h"
#include "forge/sweeper.h"

namespace clawdforge {

void add_sweep_routes(Endpoints& endpoints, Sweeper& sweeper);

}  // namespace clawdforge
