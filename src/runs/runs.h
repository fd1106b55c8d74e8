// Runs does what POST /run asks: one prompt, one answer. A run belongs to Runs, not to the
// connection that asked for it: whatever becomes of its caller, it is settled in the
// ledger, its process tree ends, its directory goes and its place is given back. The caller
// is answered as soon as the result is settled, before the process has ended. Io thread
// only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async/ask_gate.h"
#include "base/async/async.h"
#include "base/async/compute_worker.h"
#include "base/async/hang_up.h"
#include "base/async/task_group.h"
#include "base/ids.h"
#include "base/telemetry/metrics.h"
#include "model/app.h"
#include "quota/budgets/parking.h"
#include "runs/run_request.h"
#include "runs/streamed_run.h"

namespace clawdforge {

struct Attachment;
class AcpxRecords;
class AgentCatalog;
class AgentStarter;
class Apps;
class ByteBudget;
class LiveRun;
class Log;
class Policies;
class Quota;
class RunDirs;
class RunExecution;
class RunRows;
class RunSettler;
class Uploads;
class Workspaces;

class Runs {
 public:
  struct Dependencies {
    IoExecutor executor;
    RunRows& rows;
    Quota& quota;
    const Apps& apps;
    const Policies& policies;
    const AgentCatalog& catalog;
    AgentStarter& starter;
    Uploads& uploads;
    RunDirs& run_dirs;
    const Clock& clock;
    IdSource& ids;
    Metrics& metrics;
    InstanceId instance_id;
    ComputeWorker* compute = nullptr;  // reads large results; null: they are read where they come
    PermissionMode permission_mode = PermissionMode::approve_reads;  // if no table says another
    Workspaces* workspaces = nullptr;                                // null: there are none
    ByteBudget* memory = nullptr;         // counts large answers; null: without a limit
    AcpxRecords* acpx_records = nullptr;  // null: acpx drives no agent here
    Log* log = nullptr;
    bool keeps_prompts = false;  // in the ledger
  };

  explicit Runs(Dependencies deps);
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // An outcome once an agent was asked, or refused by its breaker; it is settled in the
  // ledger by then. An error if no agent was asked: Errc::forbidden "agent_not_allowed",
  // "model_not_allowed" or "permission_mode_not_allowed", Errc::invalid
  // "unknown_agent" or "permission_mode_not_supported", Errc::not_found "file_not_found",
  // Errc::over_quota "too_many_runs", Errc::unavailable "queue_full", "queue_timeout",
  // "interrupted" or "ledger_unavailable"; Errc::unauthorized "token_revoked". `hang_up` cancels
  // the run. With a `gate` the time of the run counts from when that has let it through.
  Async<RunOutcome> execute(std::shared_ptr<const App> app, RunRequest request, HangUp* hang_up,
                            std::shared_ptr<AskGate> gate = nullptr);
  // The same, but a limit that ends within the run's time lets it wait instead of refusing it.
  Async<RunOutcome> execute_in_time(std::shared_ptr<const App> app, RunRequest request,
                                    HangUp* hang_up);

  // A run whose agent is listened to. Errors as those of execute() that come before it waits, and
  // what a breaker refuses; `hang_up` counts until this returns.
  Async<std::unique_ptr<StreamedRun>> stream(std::shared_ptr<const App> app, RunRequest request,
                                             HangUp* hang_up);

  // What execute() would refuse whatever is under way: by the app's policy, or for want of a file.
  Async<void> check(std::shared_ptr<const App> app, RunRequest request);

  // Ends one of the app's own runs, and returns when that is settled. False: it has ended by
  // itself, or before. Errc::not_found "run_not_found".
  Async<bool> cancel(AppName app, RunId run_id);

  // Cancels all runs of an app, those that wait and those that run: their callers are told
  // "token_revoked".
  void end_app(const AppName& app);

  // Ended runs whose rows do not say so yet.
  std::size_t unsettled() const;

  // Interrupts all runs and waits until nothing of them is left.
  Task<void> stop();

 private:
  Result<PermissionMode> mode_of(const App& app, const AgentSpec& spec,
                                 const RunRequest& request) const;
  Result<SessionWorkspace> choose_workspace(const App& app, const RunRequest& request) const;
  Async<std::vector<Attachment>> prepare(std::shared_ptr<const App> app, RunRequest* request);
  Async<std::shared_ptr<LiveRun>> start(std::shared_ptr<const App> app, RunRequest request,
                                        std::shared_ptr<AskGate> gate);
  Task<void> work(std::shared_ptr<LiveRun> run);
  Async<void> begin(std::shared_ptr<LiveRun> run);

  const IoExecutor executor_;
  RunRows& rows_;
  const AgentCatalog& catalog_;
  const PermissionMode permission_mode_;
  Workspaces* const workspaces_;
  const AgentStarter& starter_;
  Quota& quota_;
  const Apps& apps_;
  const Policies& policies_;
  Uploads& uploads_;
  IdSource& ids_;
  const std::unique_ptr<RunSettler> settler_;
  const std::unique_ptr<RunExecution> execution_;
  std::list<LiveRun*> live_;
  bool is_stopping_ = false;
  Parking parking_;
  TaskGroup tasks_;
};

}  // namespace clawdforge
