// The rows of deliveries. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "ledger/core/ledger_records.h"
#include "model/hooks/delivery.h"

namespace clawdforge {

class LedgerWorker;

struct DeliveryFilter {
  AuditFilter audit;  // times are those of creation
  std::optional<DeliveryState> state;
};

struct DeliveryPage {
  std::vector<Delivery> deliveries;        // newest first
  std::optional<std::string> next_cursor;  // none: that was all
};

class DeliveryRows {
 public:
  explicit DeliveryRows(LedgerWorker& worker) : worker_(worker) {}

  // Errc::invalid "validation_failed" for a cursor that no page has given.
  Async<DeliveryPage> page(DeliveryFilter filter) const;
  // When the next delivery of each app is due that has any.
  Async<std::map<AppName, TimePoint>> due_by_app() const;
  // The app's deliveries that wait, whether they are due or not, the next one first.
  Async<std::vector<NextDelivery>> next(AppName app, std::int64_t limit) const;
  // All that it takes to send one. None: it does not wait any more.
  Async<std::optional<DueDelivery>> due(DeliveryId id) const;
  Async<std::int64_t> waiting() const;

  // One that belongs to no other change.
  Async<void> add(NewDelivery delivery);
  // After an attempt. It waits until `again_at`; none: it is delivered, or dead. One that is gone,
  // or ended, stays as it is.
  Async<void> note(DeliveryId id, DeliveryAttempt attempt, std::optional<TimePoint> again_at);
  // It waits again, and is due at once. Errc::not_found "delivery_not_found", Errc::conflict
  // "delivery_not_dead" or "delivery_without_body".
  Async<Delivery> retry(DeliveryId id, TimePoint at);
  // Removes what ended at or before `last`, at most `rows_max` of each state, and what has no app;
  // gives how many of the first.
  Async<std::int64_t> trim(TimePoint last, std::int64_t rows_max);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
