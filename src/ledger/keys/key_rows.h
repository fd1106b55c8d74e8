// The rows of idempotency keys, as their owner reads them. The work writes them together with its
// own rows: key_write.h. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/async/async.h"
#include "model/ask_key.h"

namespace clawdforge {

class LedgerWorker;

struct KeyRecord {
  Digest fingerprint{};
  std::optional<TimePoint> ended_at;         // none: under way
  std::shared_ptr<const KeptAnswer> answer;  // null: under way
};

class KeyRows {
 public:
  KeyRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  Async<std::optional<KeyRecord>> find(Digest digest, AppName app) const;
  // How many keys each app has, and how many bytes their answers take.
  Async<std::map<AppName, std::int64_t>> count_by_app() const;
  Async<std::map<AppName, std::int64_t>> bytes_by_app() const;

  // For work that writes nothing itself, or has to be undone: in a transaction of its own.
  Async<void> write(KeyWrite write);
  // Removes keys that ended at or before `last`, at most `rows_max`; gives how many.
  Async<std::int64_t> trim(TimePoint last, std::int64_t rows_max);

  // At start, of lives that have ended: what was under way is interrupted. Gives how many were.
  Async<std::int64_t> interrupt_left(TimePoint at);

 private:
  LedgerWorker& worker_;
  const InstanceId self_;
};

}  // namespace clawdforge
