// /admin/sweep.
#pragma once

#include "api/core/endpoint.h"
#include "upkeep/sweeper.h"

namespace clawdforge {

void add_sweep_routes(Endpoints& endpoints, Sweeper& sweeper);

}  // namespace clawdforge
