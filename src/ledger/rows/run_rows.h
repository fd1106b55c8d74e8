// The rows of runs. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "ledger/core/ledger_records.h"

namespace clawdforge {

class LedgerWorker;

class RunRows {
 public:
  RunRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  // Errc::invalid "validation_failed" for a cursor that no page has given.
  Async<RunPage> page(AuditFilter filter, Lane lane = {}) const;
  // One of the app's own. Errc::not_found "run_not_found".
  Async<RunRecord> find(AppName app, RunId id) const;

  // A run that begins, with its process. To add the same one again changes nothing.
  Async<void> add(Run run, ProcessMark process);
  // How it ended, counted in the usage if its agent was asked; the process mark stays. A row that
  // has ended stays as it is, and one that is gone stays gone.
  Async<void> settle(RunEnd end);
  // The processes of these runs are gone: their rows name none any more.
  Async<void> forget_processes(std::vector<RunId> run_ids);
  // Removes runs that have ended and began at or before `last`, the oldest first and at most
  // `rows_max`; gives how many.
  Async<std::int64_t> trim(TimePoint last, std::int64_t rows_max);

  // At start, of lives that have ended: the processes of runs, also of those that have ended, the
  // oldest first and at most `limit`.
  Async<std::vector<ProcessMark>> left_processes(std::int64_t limit) const;
  // At start: what lives that have ended have left unfinished becomes "interrupted", and no run of
  // theirs names a process any more. What they had reserved, for turns too, is given back. Gives
  // how many were unfinished.
  Async<std::int64_t> interrupt_left(TimePoint at);

 private:
  LedgerWorker& worker_;
  const InstanceId self_;
};

}  // namespace clawdforge
