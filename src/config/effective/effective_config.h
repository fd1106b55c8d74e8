// The configuration of this process: its flags, its environment, its file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"

namespace clawdforge {

std::map<std::string, std::string> environment_variables();

bool wants_help(const std::vector<std::string>& flags);
// Whether a flag without a value is there, which is then taken out.
bool take_flag(std::vector<std::string>& arguments, std::string_view flag);
// Of the commands that take every key as a flag. Gives the exit code.
int print_serve_help();

// Takes the admin token out of the environment on the way, so it must run while the
// process has one thread.
Result<Config> effective_config(std::vector<std::string> flags);

// One clear sentence on stderr, where a person looks for it. Gives the code.
int refuse(int exit_code, const Failure& error);

}  // namespace clawdforge
