// What callers of a session are told when it cannot do what they ask.
#pragma once

#include <vector>

#include "agent/core/agent_catalog.h"
#include "base/refusals.h"
#include "model/agent.h"

namespace clawdforge {

inline std::unexpected<Failure> shutting_down() {
  return fail_for_now(Errc::unavailable, "interrupted", "The gateway is shutting down.",
                      std::chrono::seconds(5));
}

inline std::unexpected<Failure> session_not_found() {
  return fail(Errc::not_found, "session_not_found", "There is no such session.");
}

// The agent would act as it pleases, whatever the session's row says.
inline std::unexpected<Failure> mode_not_supported(const AgentSpec& spec, PermissionMode mode) {
  std::vector<PermissionMode> held;
  for (const auto& [known, switches] : spec.modes) held.push_back(known);
  return mode_not_supported(spec, mode, held);
}

inline std::unexpected<Failure> session_closed() {
  return fail(Errc::gone, "session_closed", "The session is closed.");
}

}  // namespace clawdforge
