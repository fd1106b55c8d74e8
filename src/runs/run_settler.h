// RunSettler writes down how runs ended. What the ledger does not take is tried again until it
// does, so that no row says for ever that its run goes on. Io thread only. Its owner calls stop()
// and waits for it before it dies.
#pragma once

#include <cstddef>

#include "base/async/async.h"
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

  // Ended runs whose rows do not say so yet.
  std::size_t unsettled() const { return unsettled_; }

  Task<void> stop();

 private:
  Task<void> try_until_settled(RunEnd end);

  const IoExecutor executor_;
  RunRows& rows_;
  Metrics& metrics_;
  std::size_t unsettled_ = 0;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
