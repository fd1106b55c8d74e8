// The rows of gateway processes: one for each life. What every call promises, and which
// errors each may give: ledger/rows/ledger.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/async.h"
#include "base/clock.h"
#include "ledger/core/ledger_worker.h"

namespace clawdforge {

class InstanceRows {
 public:
  InstanceRows(LedgerWorker& worker, std::string self) : worker_(worker), self_(std::move(self)) {}

  // This life begins. Rows of lives that ended long ago are removed.
  Async<void> begin(std::string version, std::int64_t pid, TimePoint at);
  Async<void> end(TimePoint at);
  // A small write that shows whether the ledger takes writes (again). Brings the
  // instance's row back if another program has removed it.
  Async<void> beat(TimePoint at);

 private:
  LedgerWorker& worker_;
  const std::string self_;
};

}  // namespace clawdforge
