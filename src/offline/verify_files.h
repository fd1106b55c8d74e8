// Whether the uploads, runs and sessions of a data directory and its ledger know each other.
#pragma once

#include <string>

#include "base/clock.h"
#include "ledger/core/sql_driver.h"
#include "offline/findings.h"

namespace clawdforge {

// Outside of any transaction: beside a gateway at work each look at the ledger must be
// as new as the look at the disk. An error: one of both cannot be read.
Result<void> verify_files(SqlDriver& driver, const std::string& data_dir, bool is_running,
                          const Clock& clock, Findings& findings);

}  // namespace clawdforge
