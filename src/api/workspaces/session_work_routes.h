// What has changed in a session's directory, all of it, one file into it, and a commit:
// /sessions/{id}/diff, /archive, /files/{path} and /commit.
#pragma once

#include <cstddef>

#include "api/core/endpoint.h"

namespace clawdforge {

class Apps;
class Sessions;

// Both outlive the endpoints. `file_bytes_max`: of one file that is put.
void add_session_work_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps,
                             std::size_t file_bytes_max);

}  // namespace clawdforge
