// What is said about a run, to its app and to the admin alike. Pure functions.
#pragma once

#include <string>

#include "http/message/response.h"
#include "ledger/rows/run_rows.h"

namespace clawdforge {

// Who asks: the admin is told the gateway process that had the run, too.
enum class RunReader { app, admin };

void append_run_state(std::string& out, const RunRecord& record, RunReader reader);

Response run_list(const RunPage& page, RunReader reader);

}  // namespace clawdforge
