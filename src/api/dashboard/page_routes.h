// GET / and GET /ui/{name}: the dashboard's page and its files, and what this place is for a caller
// that is not a browser.
#pragma once

#include <span>

#include "api/core/endpoint.h"
#include "api/dashboard/assets.h"

namespace clawdforge {

// The assets outlive the endpoints.
void add_page_routes(Endpoints& endpoints, std::span<const Asset> assets);

}  // namespace clawdforge
