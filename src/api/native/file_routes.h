// POST /files.
#pragma once

#include <cstddef>

#include "api/core/endpoint.h"
#include "quota/apps.h"
#include "uploads/uploads.h"

namespace clawdforge {

// `uploads` and `apps` outlive the endpoints.
void add_file_routes(Endpoints& endpoints, Uploads& uploads, const Apps& apps,
                     std::size_t file_bytes_max);

}  // namespace clawdforge
