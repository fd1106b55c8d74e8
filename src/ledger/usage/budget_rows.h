// The rows of budgets: what was used in each window, and what asks under way have reserved. Each
// ask is checked and reserved in one transaction, so no number of callers at once can exceed a
// budget. What every call promises, and which errors each may give: ledger/ledger.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "model/limits/reservation.h"

namespace clawdforge {

class LedgerWorker;
class SqlDriver;

inline constexpr std::int64_t kRecentAsksMax = 32;  // that an estimate goes by

class BudgetRows {
 public:
  BudgetRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  Async<ReservationAnswer> reserve(ReservationRequest request);
  // The ask did not start. One that is settled has given its reservation back already.
  Async<void> release(std::string id, AppName app);
  // What the app's last asks to this agent and model have used, the newest first.
  Async<std::vector<Amounts>> recent(AppName app, std::string agent, std::string model) const;

  // Windows that ended at or before this, and those of apps that are gone: an app that comes again
  // gets its own from the usage.
  Async<void> trim(TimePoint until);

 private:
  LedgerWorker& worker_;
  const InstanceId self_;
};

// For the transactions that settle asks.
Result<void> release_in(SqlDriver& driver, const std::string& id);

}  // namespace clawdforge
