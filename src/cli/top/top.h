// `clawdforge top`: a live view of a gateway for its admin, over the whole screen. From /metrics,
// /agents and the admin's lists alone. Blocks until the user leaves.
#pragma once

#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

// The row of `clawdforge top`.
std::vector<Command> top_commands();

}  // namespace clawdforge
