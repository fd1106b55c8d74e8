// What becomes, at start, of sessions that an earlier life of the gateway has left: their
// turns are closed as interrupted, their rows have no process any more, and they sleep until
// their next turn. Each step is one commit, and a step that was done is not found again: a
// gateway that is killed half-way goes on at its next start, and no turn is closed twice.
#pragma once

#include <cstdint>

#include "base/async/async.h"
#include "upkeep/recovery_dependencies.h"

namespace clawdforge {

struct SessionsRecovered {
  std::int64_t turns_interrupted = 0;
  std::int64_t never_made = 0;   // rows of sessions whose creation was never answered
  std::int64_t directories = 0;  // without a row
};

// Before the gateway takes work, and after the processes of earlier lives are gone. Io thread.
Async<SessionsRecovered> recover_sessions(RecoveryDependencies deps);

}  // namespace clawdforge
