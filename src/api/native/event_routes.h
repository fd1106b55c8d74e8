// What sessions tell while they work: a turn as a stream, GET /sessions/{id}/events in pages
// or as a stream, and POST /sessions/{id}/cancel.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "api/core/endpoint.h"
#include "api/shapes/simple_stream.h"
#include "base/async/compute_worker.h"
#include "base/limits/byte_budget.h"
#include "quota/apps.h"
#include "quota/quota.h"
#include "sessions/sessions.h"

namespace clawdforge {

// A stream says something at least this often; callers are promised 15 s.
inline constexpr std::chrono::seconds kHeartbeat{14};

// What a stream holds of its app's: one of its streams, and memory for what it is about to send.
struct StreamShare {
  AppShare stream;
  ByteHold memory;
};
// Errc::over_quota "too_many_streams".
Result<StreamShare> admit_stream(Quota& quota, ByteBudget& memory, const App& app);

// In which shape a stream tells what the agent says.
struct StreamShape {
  std::shared_ptr<SimpleStream> simple{};  // null: as the agent said it
  ComputeWorker* compute = nullptr;        // reads large messages for that
  // Events up to this one are not told: they are read for what comes after them.
  std::int64_t told_until = 0;
};

// With a turn, only what is told of it, until it has ended. The stream ends when the app's
// token does, and holds the share until then.
Response event_stream(std::unique_ptr<EventReader> reader, std::optional<std::int64_t> turn_index,
                      StreamShare share, std::shared_ptr<const App> app, const Apps& apps,
                      StreamShape shape = {});

// All that is handed in outlives the endpoints.
void add_event_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota,
                      ByteBudget& memory, ComputeWorker& compute);

}  // namespace clawdforge
