// POST /files.
#pragma once

#include <cstddef>

#include "api/core/endpoint.h"
#include "keys/keys.h"
#include "quota/apps.h"
#include "uploads/uploads.h"

namespace clawdforge {

// All that is handed in outlives the endpoints.
void add_file_routes(Endpoints& endpoints, Uploads& uploads, const Apps& apps, Keys& keys,
                     std::size_t file_bytes_max);

}  // namespace clawdforge
