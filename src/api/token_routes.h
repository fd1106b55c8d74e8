// /admin/tokens and /whoami.
#pragma once

#include "api/endpoint.h"
#include "forge/apps.h"

namespace clawdforge {

void add_token_routes(Endpoints& endpoints, Apps& apps);

}  // namespace clawdforge
