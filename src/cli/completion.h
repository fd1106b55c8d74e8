// What a shell offers while a command is typed. `clawdforge completion SHELL` prints a script that
// calls `clawdforge __complete WORDS` at each Tab; the answer is made from the table of commands,
// and the names of sessions, agents and tokens are asked of the gateway.
#pragma once

#include <string>
#include <vector>

#include "cli/core/command.h"
#include "client/local_gateway.h"

namespace clawdforge {

// The row of `completion`.
Command completion_command();

// Prints what may stand in the place of the last of `words`, one a line. Never complains: a shell
// has no place for it. Takes at most kOfferMax.
int print_offers(const std::vector<Command>& table, std::vector<std::string> words,
                 const FindLocalGateway& find_local);

}  // namespace clawdforge
