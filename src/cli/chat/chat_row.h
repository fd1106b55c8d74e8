// The row of `clawdforge chat` in the table of commands.
#pragma once

#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

std::vector<Command> chat_commands();

}  // namespace clawdforge
