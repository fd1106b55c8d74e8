// /admin/tokens and /whoami.
#pragma once

#include "api/core/endpoint.h"
#include "quota/apps.h"
#include "sessions/sessions.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_token_routes(Endpoints& endpoints, Apps& apps, Sessions& sessions);

}  // namespace clawdforge
