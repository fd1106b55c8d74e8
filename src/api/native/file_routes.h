// POST /files.
#pragma once

#include <cstddef>

#include "api/core/endpoint.h"
#include "uploads/uploads.h"

namespace clawdforge {

// `uploads` outlives the endpoints.
void add_file_routes(Endpoints& endpoints, Uploads& uploads, std::size_t file_bytes_max);

}  // namespace clawdforge
