// What is told of a tool that an agent asked for in vain. Pure.
#pragma once

#include <string_view>

#include "model/run.h"
#include "transcript/permission_request.h"

namespace clawdforge {

// `message` is the agent's own question, in the words of the Agent Client Protocol.
Denial denied_tool(const PermissionRequest& question, std::string_view message);

}  // namespace clawdforge
