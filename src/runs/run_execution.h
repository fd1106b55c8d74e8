// RunExecution takes a run that may start to its end: it makes the directory, starts the program,
// writes the row, asks the agent, has the end settled, answers the caller, and waits until nothing
// of the program is left. Owned by Runs; io thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_starter.h"
#include "base/async/async.h"
#include "base/async/compute_worker.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/limits/byte_budget.h"
#include "base/telemetry/log.h"
#include "ledger/rows/run_rows.h"
#include "runs/live_run.h"
#include "runs/run_settler.h"
#include "storage/work/acpx_records.h"
#include "storage/work/run_dirs.h"
#include "workspaces/workspaces.h"

namespace clawdforge {

class RunExecution {
 public:
  struct Dependencies {
    IoExecutor executor;
    RunRows& rows;
    const AgentCatalog& catalog;
    AgentStarter& starter;
    RunDirs& run_dirs;
    RunSettler& settler;
    const Clock& clock;
    IdSource& ids;
    InstanceId instance_id;
    ComputeWorker* compute = nullptr;  // as in Runs
    Workspaces* workspaces = nullptr;  // likewise
    ByteBudget* memory = nullptr;
    AcpxRecords* acpx_records = nullptr;
    Log* log = nullptr;
    bool keeps_prompts = false;  // as in Runs
  };

  explicit RunExecution(Dependencies deps) : deps_(std::move(deps)) {}

  // The run's ticket is ready. Its caller has an answer when this returns, and long before that
  // if its program takes its time to end.
  Task<void> execute(std::shared_ptr<LiveRun> run);

 private:
  Task<void> ask(std::shared_ptr<LiveRun> run);
  std::unique_ptr<SpareClaim> claim_spare(const LiveRun& run) const;
  Async<void> begin(std::shared_ptr<LiveRun> run);
  Result<std::unique_ptr<OneShotAgent>> start(LiveRun& run, const AgentSpec& spec, RunDir dir,
                                              std::vector<VisiblePath> visible);
  Task<void> end_agent(std::shared_ptr<LiveRun> run);
  Async<std::vector<VisiblePath>> make_workspace(std::shared_ptr<LiveRun> run, RunDir* dir);
  Async<void> add_row(std::shared_ptr<LiveRun> run, Run row);
  Task<void> settle(std::shared_ptr<LiveRun> run, OneShotAnswer answer);
  Task<Result<std::string>> value_of(AppName app, OneShotAnswer* answer,
                                     std::shared_ptr<const JsonSchema> schema);

  Dependencies deps_;
};

}  // namespace clawdforge
