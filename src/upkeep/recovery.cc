#include "upkeep/recovery.h"

#include <utility>
#include <vector>

#include "process/tree/leftovers.h"
#include "upkeep/run_recovery.h"
#include "upkeep/session_recovery.h"
#include "upkeep/upload_recovery.h"

namespace clawdforge {

namespace {

constexpr std::int64_t kLeftMarksMax = 20'000;  // of processes of runs, and as many of sessions

struct Found {
  LeftoversReport processes;
  RunsRecovered runs;
  SessionsRecovered sessions;
  UploadsRecovered uploads;
  std::int64_t keys_interrupted = 0;
};

Async<LeftoversReport> end_processes(RecoveryDependencies deps) {
  auto marks = co_await deps.ledger.runs.left_processes(kLeftMarksMax);
  if (!marks) co_return std::unexpected(marks.error());
  const auto of_sessions = co_await deps.ledger.sessions.left_processes(kLeftMarksMax);
  if (!of_sessions) co_return std::unexpected(of_sessions.error());
  marks->insert(marks->end(), of_sessions->begin(), of_sessions->end());
  std::vector<Leftover> leftovers;
  leftovers.reserve(marks->size());
  for (const ProcessMark& mark : *marks) {
    leftovers.push_back(
        {.id = {.pid = mark.pid, .start_time = mark.start_time}, .boot_id = mark.boot_id});
  }
  LeftoversReport report =
      co_await end_leftovers(deps.executor, std::move(leftovers), deps.kill_grace, deps.busy_paths);
  for (const std::int64_t pid : report.stuck) {
    deps.log.warn("a process of an earlier life does not end", {{"pid", pid}});
  }
  co_return report;
}

void report(const Found& found, Log& log, Metrics& metrics) {
  const std::int64_t directories = found.runs.directories + found.sessions.directories;
  const std::initializer_list<LogField> counts = {
      {"runs", found.runs.interrupted},
      {"turns", found.sessions.turns_interrupted},
      {"sessions_never_made", found.sessions.never_made},
      {"process_trees", found.processes.ended},
      {"process_trees_stuck", static_cast<std::int64_t>(found.processes.stuck.size())},
      {"directories", directories},
      {"upload_files", found.uploads.files_removed},
      {"upload_rows", found.uploads.rows_removed},
      {"keys", found.keys_interrupted}};
  bool is_clean = true;
  for (const LogField& count : counts) {
    const auto value = std::get<std::int64_t>(count.value);
    is_clean = is_clean && value == 0;
    metrics
        .gauge("clawdforge_recovered", "What an earlier life had left, found at start.",
               {{"what", std::string(count.key)}})
        .set(value);
  }
  if (!is_clean) log.info("recovered", counts);
}

}  // namespace

Async<void> recover(RecoveryDependencies deps) {
  Found found;
  // We hold the lock on the data directory: every other gateway of this ledger has ended.
  const auto others = co_await deps.ledger.instances.end_others(deps.clock.now());
  if (!others) co_return std::unexpected(others.error());
  auto ended = co_await end_processes(deps);
  if (!ended) co_return std::unexpected(ended.error());
  found.processes = std::move(*ended);
  const auto settled = co_await recover_runs(deps);
  if (!settled) co_return std::unexpected(settled.error());
  found.runs = *settled;
  const auto adopted = co_await recover_sessions(deps);
  if (!adopted) co_return std::unexpected(adopted.error());
  found.sessions = *adopted;
  const auto interrupted = co_await deps.ledger.keys.interrupt_left(deps.clock.now());
  if (!interrupted) co_return std::unexpected(interrupted.error());
  found.keys_interrupted = *interrupted;
  const auto joined = co_await recover_uploads(deps);
  if (!joined) co_return std::unexpected(joined.error());
  found.uploads = *joined;
  report(found, deps.log, deps.metrics);
  co_return Result<void>{};
}

}  // namespace clawdforge
