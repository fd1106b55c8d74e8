// A delivery is one event on its way to a webhook of an app. Plain records, no I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/secret.h"
#include "base/strong_id.h"

namespace clawdforge {

// Until it is delivered or given up it waits, also while it is under way: a crash loses nothing.
enum class DeliveryState { waiting, delivered, dead };

std::string_view name_of(DeliveryState state);
std::optional<DeliveryState> delivery_state_from(std::string_view name);

// What happened, to be told to `url`, which the app's policy allowed (check_webhook()).
struct NewDelivery {
  DeliveryId id;  // of the event too: the receiver sees it again with each attempt
  AppName app;
  std::string url;
  std::string type;                         // such as "job.succeeded"
  std::shared_ptr<const std::string> body;  // JSON text, as event_body() makes it
  TimePoint at;
};

// As it is shown.
struct Delivery {
  DeliveryId id;
  AppName app;
  std::string url;
  std::string type;
  DeliveryState state = DeliveryState::waiting;
  std::int64_t attempts = 0;  // since it was made, or asked for again
  TimePoint created_at;
  std::optional<TimePoint> next_at;  // of one that waits
  std::optional<TimePoint> ended_at;
  std::optional<std::int64_t> last_status;  // HTTP, of the last attempt that had an answer
  std::string last_error;                   // why the last attempt was not one; empty: it was
};

struct NextDelivery {
  DeliveryId id;
  TimePoint due_at;
};

// As it is sent.
struct DueDelivery {
  DeliveryId id;
  std::string url;
  std::string type;
  std::string body;
  std::int64_t attempts = 0;  // so far
  TimePoint begun_at;         // from when on it is tried
  bool is_allowed = false;    // by the app's policy as it is now
  Secret secret;              // the app's; empty: it has none any more
};

// What an attempt came to.
struct DeliveryAttempt {
  std::optional<std::int64_t> status;  // HTTP; none: there was no answer
  std::string error;                   // one sentence; empty: delivered
  TimePoint at;
};

}  // namespace clawdforge
