// One real question to an agent, through a gateway. Blocks.
#pragma once

#include <string>

#include "cli/core/ask.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kQuestionMax{180};  // for an agent that has to start first

// The agent's answer, as plain text. Asks with the app token that is there; without one the admin
// mints an app for it, which is revoked afterwards.
Asked<std::string> ask_agent(const Invocation& invocation, const std::string& agent);

}  // namespace clawdforge
