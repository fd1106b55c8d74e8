// GET /jobs/{id}/events: the states of a job as a stream, and for a turn what the turn tells.
#pragma once

#include "api/core/endpoint.h"
#include "api/jobs/job_routes.h"

namespace clawdforge {

Task<Response> job_events(JobRoutes routes, Caller caller, Request* request);

}  // namespace clawdforge
