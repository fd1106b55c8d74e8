// GET /admin/overview and GET /admin/config: what paints the owner's first screen, and what is
// configured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/core/endpoint.h"
#include "base/clock.h"

namespace clawdforge {

// Something that there is only so much of.
struct Room {
  std::string_view name;  // literals
  std::int64_t used = 0;
  std::int64_t max = 0;
  std::string_view at_max;  // what happens there
};

// Asked on the io thread; outlives the endpoints.
struct OverviewSources {
  std::function<std::vector<Room>()> rooms;
  // Why the gateway takes no work: a code; empty: it does.
  std::function<std::string_view()> trouble;
  std::function<std::int64_t()> questions_open;
  std::function<std::int64_t()> apps;
  std::function<std::string()> config;  // JSON text, secrets masked
  std::string instance_id;
  TimePoint started_at;
  const Clock& clock;
};

void add_overview_routes(Endpoints& endpoints, OverviewSources sources);

}  // namespace clawdforge
