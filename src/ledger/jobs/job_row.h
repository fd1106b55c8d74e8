// A row of the table `jobs`, to the model. Another program may have written it: what cannot be
// understood in a row is left out, and the rest is shown.
#pragma once

#include "ledger/core/sql_driver.h"
#include "model/jobs/job.h"

namespace clawdforge {

// What job_from() reads, in its order.
inline constexpr std::string_view kJobColumns =
    "job_id, app_name, kind, state, session_id, meta, webhook, request_id, created_at, ready_at, "
    "started_at, ended_at, attempts, attempts_max, turn_index, after_event, status";
inline constexpr std::size_t kJobColumnId = 0;
inline constexpr std::size_t kJobColumnCreatedAt = 8;
inline constexpr std::size_t kJobColumnCount = 17;

Job job_from(const SqlRow& row);

}  // namespace clawdforge
