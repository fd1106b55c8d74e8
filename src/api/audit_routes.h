// The audit: /admin/runs.
#pragma once

#include "api/endpoint.h"
#include "ledger/ledger.h"

namespace clawdforge {

void add_audit_routes(Endpoints& endpoints, LedgerReader& ledger);

}  // namespace clawdforge
