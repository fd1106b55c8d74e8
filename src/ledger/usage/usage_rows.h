// The rows of usage: what apps have used, by time, app, agent, model and kind. They are written by
// those who settle runs and turns (ledger/usage/usage_count.h). What every call promises, and which
// errors each may give: ledger/ledger.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {

class LedgerWorker;

// What rows are told apart by; the others are summed up.
struct UsageDimensions {
  bool app = false;
  bool agent = false;
  bool model = false;
  bool kind = false;
};

struct UsageQuery {
  std::int64_t from = 0;  // unix seconds; what ended in [from, to)
  std::int64_t to = 0;
  std::optional<AppName> app;  // only this one's
  UsageDimensions by;
  std::int64_t step = 0;  // seconds by which times are told apart; 0: not at all
  std::int64_t rows_max = 0;
};

// Sums, with what they are told apart by; the rest is empty.
struct UsageRow {
  std::int64_t at = 0;
  AppName app;
  std::string agent;
  std::string model;
  std::string kind;
  UsageSums sums;
};

class UsageRows {
 public:
  explicit UsageRows(LedgerWorker& worker) : worker_(worker) {}

  // By time, app, agent, model and kind. Errc::too_large "too_many_rows" when there are more than
  // `rows_max`.
  Async<std::vector<UsageRow>> read(UsageQuery query) const;

  // Turns the oldest hour of minutes into one of hours, if it ended at or before `until`. False:
  // there is none.
  Async<bool> fold(TimePoint until);
  // Removes what began before `first`, an hour of it at a time. False: there is none.
  Async<bool> trim(TimePoint first);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
