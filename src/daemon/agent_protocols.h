// Which protocols agents may speak, and who speaks each of them: the only place that knows all
// of them.
#pragma once

#include <string>

#include "agent/core/process_starter.h"

namespace clawdforge {

// `own_program` has the host of acpx's processes in it; `acpx_program` is acpx.
AgentProtocols agent_protocols(const std::string& own_program, const std::string& acpx_program);

}  // namespace clawdforge
