// /admin/tokens.
#pragma once

#include "api/core/endpoint.h"
#include "quota/apps.h"
#include "sessions/sessions.h"
#include "upkeep/app_removals.h"

namespace clawdforge {

// All outlive the endpoints.
void add_token_routes(Endpoints& endpoints, Apps& apps, Sessions& sessions, AppRemovals& removals);

}  // namespace clawdforge
