// A row of the table `runs`, to and from the model. Other programs write this table too:
// what cannot be understood in a row is left out, and the rest is shown. Only a state that no
// ended run has makes the whole row unreadable: how the run ended decides.
#pragma once

#include "ledger/core/sql_driver.h"
#include "model/run.h"

namespace clawdforge {

// What run_from() reads, in its order.
inline constexpr std::string_view kRunColumns =
    "run_id, app_name, agent, model, prompt_bytes, started_at, instance_id, state, outcome, "
    "ended_at, duration_ms, result_bytes, stop_reason, exit_code, exit_signal, input_tokens, "
    "output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, error, agent_ms";

inline constexpr std::size_t kRunColumnId = 0;
inline constexpr std::size_t kRunColumnStartedAt = 5;

// Errc::internal "internal": the state is not one that a run can end with.
Result<RunRecord> run_from(const SqlRow& row);

// The parameters of the statement that settles a run: run_id, and the columns from state on.
SqlRow row_of(const RunEnd& end);

}  // namespace clawdforge
