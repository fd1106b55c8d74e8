// /healthz, /readyz, /metrics, /openapi.json.
#pragma once

#include <cstdint>
#include <functional>

#include "api/core/endpoint.h"
#include "base/telemetry/metrics.h"
#include "model/program.h"

namespace clawdforge {

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
};

// `metrics_without_token`: else /metrics takes the admin token.
void add_health_routes(Endpoints& endpoints, const HealthSources& sources,
                       bool metrics_without_token);

}  // namespace clawdforge
