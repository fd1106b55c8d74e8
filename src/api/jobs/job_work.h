// What a job does: the plain call, by the plain call's own code. Checked once when the job is
// accepted, and again when it is done.
#pragma once

#include "api/native/run_routes.h"
#include "api/native/session_routes.h"
#include "jobs/jobs.h"

namespace clawdforge {

struct JobCalls {
  RunCall run;
  TurnCall turn;
};

// What the plain call would refuse whatever is under way: the same failures. `ignored` as in
// Fields::check().
Async<void> check_job(JobCalls calls, std::shared_ptr<const App> app, const JobRequest* request,
                      std::string* ignored);

// One attempt.
Task<JobAnswer> perform_job(JobCalls calls, JobCall call);

}  // namespace clawdforge
