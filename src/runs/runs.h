// Runs does what POST /run asks: one prompt, one answer. A run belongs to Runs, not to the
// connection that asked for it: whatever becomes of its caller, it is settled in the
// ledger, its process tree ends, its directory goes and its place is given back. The caller
// is answered as soon as the result is settled, before the process has ended. Io thread
// only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/async/task_group.h"
#include "base/ids.h"
#include "base/telemetry/metrics.h"
#include "quota/quota.h"
#include "runs/live_run.h"
#include "runs/run_execution.h"
#include "runs/run_request.h"
#include "runs/run_settler.h"
#include "uploads/uploads.h"

namespace clawdforge {

class Runs {
 public:
  struct Dependencies {
    IoExecutor executor;
    RunRows& rows;
    Quota& quota;
    const AgentCatalog& catalog;
    AgentStarter& starter;
    Uploads& uploads;
    RunDirs& run_dirs;
    const Clock& clock;
    IdSource& ids;
    Metrics& metrics;
    std::string instance_id;
  };

  explicit Runs(Dependencies deps);
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // An outcome once an agent was asked, or refused by its breaker; it is settled in the
  // ledger by then. An error if no agent was asked: Errc::not_found "file_not_found",
  // Errc::over_quota "too_many_runs", Errc::unavailable "queue_full", "queue_timeout",
  // "interrupted" or "ledger_unavailable". `hang_up` cancels the run.
  Async<RunOutcome> execute(std::shared_ptr<const App> app, RunRequest request, HangUp* hang_up);

  // Ended runs whose rows do not say so yet.
  std::size_t unsettled() const { return settler_.unsettled(); }

  // Interrupts all runs and waits until nothing of them is left.
  Task<void> stop();

 private:
  Task<void> work(std::shared_ptr<LiveRun> run);

  const IoExecutor executor_;
  Quota& quota_;
  Uploads& uploads_;
  RunSettler settler_;
  RunExecution execution_;
  LiveRun::Registry live_;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
