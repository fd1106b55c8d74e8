// /admin/tokens and /whoami.
#pragma once

#include "api/endpoint.h"
#include "forge/apps.h"
#include "forge/sessions.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_token_routes(Endpoints& endpoints, Apps& apps, Sessions& sessions);

}  // namespace clawdforge
