// `clawdforge backup`: a consistent copy of the ledger, beside a running gateway or without.
#pragma once

#include <string>
#include <vector>

namespace clawdforge {

// The exit code: 0 done, 2 wrong usage or configuration, 4 FILE is there already, 5 failed,
// 128 and the signal's number where one ended it. Without 0 there is no FILE and nothing of
// it.
int backup(std::vector<std::string> arguments);

}  // namespace clawdforge
