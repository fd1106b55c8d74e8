// What is set for the whole process, once, before there is a second thread.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace clawdforge {

std::map<std::string, std::string> environment_variables();

// Not dumpable: other programs of the same user must not read our secrets from memory.
// The soft limit on descriptors raised, as far as the hard one goes. SIGPIPE ignored: a caller that
// hangs up is an error value, not a signal.
void prepare_process();

// How many descriptors this process may have open.
std::size_t descriptors_max();

bool wants_help(const std::vector<std::string>& flags);
int print_serve_help();

}  // namespace clawdforge
