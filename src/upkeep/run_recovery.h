// What becomes, at start, of runs that an earlier life of the gateway has left: their rows are
// settled as interrupted, and their directories go.
#pragma once

#include <cstdint>

#include "base/async/async.h"
#include "upkeep/recovery_dependencies.h"

namespace clawdforge {

struct RunsRecovered {
  std::int64_t interrupted = 0;
  std::int64_t directories = 0;
};

// Before the gateway takes work, and after the processes of earlier lives are gone. Io thread.
Async<RunsRecovered> recover_runs(RecoveryDependencies deps);

}  // namespace clawdforge
