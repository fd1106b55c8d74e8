// The row of `clawdforge dashboard`: a link that signs the owner's browser in.
#pragma once

#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

std::vector<Command> dashboard_commands();

}  // namespace clawdforge
