// /healthz, /readyz, /metrics, /openapi.json.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "api/core/endpoint.h"
#include "base/clock.h"
#include "base/telemetry/metrics.h"
#include "model/program.h"

namespace clawdforge {

// How the login stands that is kept for Claude.
struct LoginHealth {
  std::string_view state;
  std::optional<TimePoint> expires_at = std::nullopt;       // none: not known
  std::optional<TimePoint> sign_in_ends_at = std::nullopt;  // from then on a person has to log in
  bool ends_soon = false;
};

// What the health answers are made of. Outlives the endpoints.
struct HealthSources {
  std::function<bool()> is_ledger_healthy;
  std::function<std::int64_t()> open_sessions;  // by the ledger's rows
  const Metrics& metrics;
  const bool& is_draining;
  const ProgramFinding& claude;
  const ProgramFinding& acpx;
  std::function<bool()> is_disk_stalled;
  std::function<void()> show_depths;  // brings the gauges of what waits up to date
  std::function<LoginHealth()> login;
  std::string_view jail = {};    // by what agents can be jailed
  std::string_view limits = {};  // by what their limits are held
};

// `metrics_without_token`: else /metrics takes the admin token.
void add_health_routes(Endpoints& endpoints, const HealthSources& sources,
                       bool metrics_without_token);

}  // namespace clawdforge
