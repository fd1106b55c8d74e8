// The audit: /admin/runs, /admin/sessions and /admin/events.
#pragma once

#include "api/core/endpoint.h"
#include "ledger/rows/ledger.h"
#include "sessions/sessions.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_audit_routes(Endpoints& endpoints, LedgerReader& ledger, Sessions& sessions);

}  // namespace clawdforge
