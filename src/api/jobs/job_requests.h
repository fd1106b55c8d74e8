// What the requests to /jobs ask for, read and checked. Pure functions over foreign text; a mistake
// is Errc::malformed or Errc::invalid with all that is wrong. `ignored` as in Fields::check().
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "jobs/jobs.h"

namespace clawdforge {

// The body of POST /jobs. What is in `run` or `turn` is not looked at yet.
Result<JobRequest> parse_job(std::string_view body, std::string* ignored = nullptr);

// The query of GET /jobs, for this app.
Result<JobFilter> parse_job_list(std::string_view query, AppName app);
// The query of GET /admin/jobs.
Result<JobFilter> parse_admin_job_list(std::string_view query);

// Fields of a part of the body are named with it: run.prompt.
Failure within(std::string_view part, Failure failure);

}  // namespace clawdforge
