// POST /jobs, and what an app sees of its jobs: /jobs, /jobs/{id}, /jobs/{id}/events. A plain run
// or turn whose caller prefers not to wait becomes a job, too.
#pragma once

#include "api/core/endpoint.h"
#include "api/jobs/job_work.h"
#include "jobs/jobs.h"
#include "keys/keys.h"
#include "quota/policies.h"
#include "storage/work/answer_files.h"

namespace clawdforge {

struct JobRoutes {
  Jobs* jobs = nullptr;
  const JobRows* rows = nullptr;
  const AnswerFiles* files = nullptr;
  const Policies* policies = nullptr;
  Keys* keys = nullptr;
  JobCalls calls;
};

// All that is handed in outlives the endpoints. The endpoints of runs and turns are there already.
void add_job_routes(Endpoints& endpoints, JobRoutes routes);

}  // namespace clawdforge
