// A job as JSON, as the API and webhooks show it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/jobs/job.h"

namespace clawdforge {

// Without its answer, and without the brace that closes it.
void append_job_open(std::string& out, const Job& job);
// The whole. `answer` is JSON text; empty: there is none.
std::string job_json(const Job& job, std::string_view answer);

}  // namespace clawdforge
