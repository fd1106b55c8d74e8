// The command line: finds the command in the table, reads its arguments, runs it, and says in one
// line what went wrong. The client's commands speak HTTP to a gateway and know nothing else of it;
// the commands of the daemon come from outside.
#pragma once

#include <string>
#include <vector>

#include "cli/core/command.h"
#include "client/local_gateway.h"

namespace clawdforge {

// The exit code: 0 done, 1 no answer, 2 wrong usage, 3 no token, 4 refused (HTTP 4xx),
// 5 failed (HTTP 5xx), 130 interrupted. `further`: commands that are not the client's.
int run_program(std::vector<std::string> given, const FindLocalGateway& find_local,
                std::vector<Command> further);

}  // namespace clawdforge
