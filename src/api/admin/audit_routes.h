// The audit: /admin/runs, /admin/sessions and /admin/events.
#pragma once

#include "api/core/endpoint.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/run_rows.h"
#include "ledger/sessions/session_rows.h"
#include "sessions/sessions.h"

namespace clawdforge {

// Both outlive the endpoints.
// What the routes read.
struct AuditSources {
  const RunRows& runs;
  const SessionRows& sessions;
  const AuditRows& audit;
};

void add_audit_routes(Endpoints& endpoints, AuditSources sources, Sessions& sessions);

}  // namespace clawdforge
