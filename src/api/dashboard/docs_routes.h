// GET /docs, /docs/ and /docs/{name}: the documents as pages, with a page of all calls.
#pragma once

#include <span>

#include "api/core/endpoint.h"
#include "api/dashboard/assets.h"

namespace clawdforge {

// The assets outlive the endpoints.
void add_docs_routes(Endpoints& endpoints, std::span<const Asset> assets);

}  // namespace clawdforge
