// GET /usage for an app, GET /admin/usage for the owner: what asks have used.
#pragma once

#include "api/core/endpoint.h"
#include "base/clock.h"
#include "ledger/usage/usage_rows.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_usage_routes(Endpoints& endpoints, const UsageRows& rows, const Clock& clock);

}  // namespace clawdforge
