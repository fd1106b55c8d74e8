// The help, made from the table of commands. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

// All commands by their groups.
std::string help_of_program(const std::vector<Command>& table);
// The commands that begin with this word, such as "token"; empty: there are none.
std::string help_of_family(const std::vector<Command>& table, std::string_view word);
std::string help_of_command(const Command& command);

}  // namespace clawdforge
