// The rows of gateway processes: one for each life. What every call promises, and which
// errors each may give: ledger/ledger.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/strong_id.h"

namespace clawdforge {

class LedgerWorker;

class InstanceRows {
 public:
  InstanceRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  // This life begins. Rows of lives that ended long ago are removed.
  Async<void> begin(std::string version, std::int64_t pid, TimePoint at);
  Async<void> end(TimePoint at);
  // At start: every other life that has no end gets one; gives how many. Only for a caller with
  // proof that none of them runs. Recovery has it: it holds the lock on the data directory, and
  // one ledger has one gateway. With several gateways the end of a lease is the proof.
  Async<std::int64_t> end_others(TimePoint at);
  // A small write that shows whether the ledger takes writes (again). Brings the
  // instance's row back if another program has removed it.
  Async<void> beat(TimePoint at);

 private:
  LedgerWorker& worker_;
  const InstanceId self_;
};

// SQL, for the rows of other nouns: the row of `table` belongs to no gateway process that lives.
// Work of a living one is never taken away from it.
std::string owner_has_ended(std::string_view table);
// SQL: the row of `table` may be written by the gateway process whose id is the parameter
// `self`, "$2" for one: it is its own, or its owner has ended.
std::string may_be_written_by(std::string_view table, std::string_view self);

}  // namespace clawdforge
