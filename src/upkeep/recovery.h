// What the gateway does at start about what an earlier life has left: it ends processes
// that are still there, settles rows, removes directories and files, and reports what it
// has found, in one line of the log and in the metrics. Killing comes before marking: if we
// are killed in between, the next start finds the marks and does it again.
#pragma once

#include <chrono>
#include <string>

#include "base/async.h"
#include "base/log.h"
#include "base/metrics.h"
#include "ledger/rows/ledger.h"
#include "runs/runs.h"
#include "upkeep/session_recovery.h"
#include "upkeep/sweeper.h"

namespace clawdforge {

struct RecoveryDependencies {
  IoExecutor executor;
  Ledger& ledger;
  Runs& runs;
  Sweeper& sweeper;
  SessionRecovery sessions;
  Log& log;
  Metrics& metrics;
  std::chrono::milliseconds kill_grace;
};

// Before the gateway takes work. An error: the ledger or the disk fails, and the gateway
// cannot start. A process that does not end is none.
Async<void> recover(RecoveryDependencies deps);

}  // namespace clawdforge
