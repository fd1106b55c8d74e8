// For the rows of other nouns: a delivery in the transaction of what it tells of.
#pragma once

#include "base/result.h"
#include "model/hooks/delivery.h"

namespace clawdforge {

class SqlDriver;

// Of one app. What would be one more is dead at once, and has no body.
inline constexpr std::int64_t kDeliveriesWaitingMaxPerApp = 1'000;

// To add the same one again changes nothing. When the transaction is committed, Webhooks::wake()
// has to be called, so that it is sent soon.
Result<void> add_delivery(SqlDriver& driver, const NewDelivery& delivery);

}  // namespace clawdforge
