// What callers of a session are told when it cannot do what they ask.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  std::vector<std::string_view> held;
  for (const auto& [known, switches] : spec.modes) held.push_back(name_of(known));
  std::string sentence = fmt::format(
      "The agent {} cannot be held to the permission mode {}, only to {}: ask for one of these",
      spec.name, name_of(mode), fmt::join(held, ", "));
  // acpx answers by itself, whatever the table says.
  if (spec.protocol == AgentProtocol::acpx && mode == PermissionMode::ask) {
    sentence += '.';
  } else {
    sentence += fmt::format(
        ", or, if the agent asks before it uses a tool, let the owner name {} in permission_modes "
        "of "
        "its table [agents.{}].",
        name_of(mode), spec.name);
  }
  return fail(Errc::invalid, "permission_mode_not_supported", std::move(sentence));
}

inline std::unexpected<Failure> session_closed() {
  return fail(Errc::gone, "session_closed", "The session is closed.");
}

}  // namespace clawdforge
