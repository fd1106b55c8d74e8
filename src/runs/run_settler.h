// RunSettler writes down how runs ended, and that their processes are gone. What the ledger does
// not take is tried again until it does, so that no row says for ever that its run goes on. Io
// thread only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/telemetry/metrics.h"
#include "ledger/rows/run_rows.h"

namespace clawdforge {

class RunSettler {
 public:
  RunSettler(IoExecutor executor, RunRows& rows, Metrics& metrics);
  RunSettler(const RunSettler&) = delete;
  RunSettler& operator=(const RunSettler&) = delete;

  // Returns when the end is committed. An error: it is not, and is tried again.
  Async<void> settle(RunEnd end);
  // For a row of which the ledger has not said whether it was kept.
  void settle_later(RunEnd end);

  // Nothing is left of the run's process tree: its row need not name it any more. Written a little
  // later, for many runs at once: until then a start would look for a tree that is not there.
  void note_gone(RunId run_id);

  // Ended runs whose rows do not say so yet.
  std::size_t unsettled() const { return unsettled_; }

  Task<void> stop();

 private:
  Task<void> try_until_settled(RunEnd end);
  Task<void> forget_gone();

  const IoExecutor executor_;
  RunRows& rows_;
  Metrics& metrics_;
  std::size_t unsettled_ = 0;
  std::vector<RunId> gone_;     // ids of runs whose rows still name a process
  bool is_forgetting_ = false;  // a task will see to gone_
  Signal stopping_;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
