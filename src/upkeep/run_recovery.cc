#include "upkeep/run_recovery.h"

namespace clawdforge {

Async<RunsRecovered> recover_runs(RecoveryDependencies deps) {
  const auto interrupted = co_await deps.ledger.runs.interrupt_left(deps.clock.now());
  if (!interrupted) co_return std::unexpected(interrupted.error());
  const auto cleared = co_await deps.run_dirs.clear();
  if (!cleared) co_return std::unexpected(cleared.error());
  co_return RunsRecovered{.interrupted = *interrupted, .directories = *cleared};
}

}  // namespace clawdforge
