// The configuration of this process: its flags, its environment, its file.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace clawdforge {

// Takes the admin token out of the environment on the way, so it must run while the
// process has one thread.
Result<Config> effective_config(std::vector<std::string> flags);

// One clear sentence on stderr, where a person looks for it. Gives the code.
int refuse(int exit_code, const Failure& error);

}  // namespace clawdforge
