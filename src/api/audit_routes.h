// The audit: /admin/runs, /admin/sessions and /admin/events.
#pragma once

#include "api/endpoint.h"
#include "forge/sessions.h"
#include "ledger/ledger.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_audit_routes(Endpoints& endpoints, LedgerReader& ledger, Sessions& sessions);

}  // namespace clawdforge
