// A job as JSON, as the API shows it.
#pragma once

#include <string>

#include "http/message/response.h"
#include "ledger/jobs/job_rows.h"

namespace clawdforge {

// 202, with the path of the job.
Response accepted_job(const Job& job);
// The admin is told whose each of them is.
enum class JobReader { app, admin };
Response job_list(const JobPage& page, JobReader reader);
// {"job_id":…,"state":…}: what a reader of its events is told.
std::string job_state_json(const Job& job);

}  // namespace clawdforge
