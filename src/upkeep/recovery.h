// What the gateway does at start about what an earlier life has left: it ends processes
// that are still there, settles rows, removes directories and files, and reports what it
// has found, in one line of the log and in the metrics. Killing comes before marking: if we
// are killed in between, the next start finds the marks and does it again.
#pragma once

#include "base/async/async.h"
#include "upkeep/recovery_dependencies.h"

namespace clawdforge {

// Before the gateway takes work. An error: the ledger or the disk fails, and the gateway
// cannot start. A process that does not end is not an error.
Async<void> recover(RecoveryDependencies deps);

}  // namespace clawdforge
