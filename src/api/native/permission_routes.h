// The questions that an agent asks, and their answers: /sessions/{id}/permissions.
#pragma once

#include "api/core/endpoint.h"
#include "sessions/sessions.h"

namespace clawdforge {

// The body of an answer: option_id, or decision allow or deny. Errc::malformed or
// Errc::invalid. `ignored` as in Fields::check().
Result<PermissionChoice> parse_choice(std::string_view body, std::string* ignored = nullptr);

// `sessions` outlives the endpoints.
void add_permission_routes(Endpoints& endpoints, Sessions& sessions);

}  // namespace clawdforge
