// /sessions and what is below it.
#pragma once

#include "api/core/endpoint.h"
#include "api/native/session_requests.h"
#include "base/async/compute_worker.h"
#include "ledger/sessions/session_rows.h"
#include "quota/apps.h"
#include "quota/quota.h"
#include "sessions/sessions.h"

namespace clawdforge {

// All that is handed in outlives the endpoints.
void add_session_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota,
                        ComputeWorker& compute, const SessionRows& rows, SessionDefaults defaults);

// The session that a path names first. What is no id is not found, like any other.
Result<std::string> session_id_of(const Request& request);
// Absent, somebody else's, or no id at all: the same body, whoever found it out.
Response session_problem(Failure error, std::string_view request_id);

}  // namespace clawdforge
