// `clawdforge verify`: whether the ledger, and the files beside it, are as they should be.
#pragma once

#include <string>
#include <vector>

namespace clawdforge {

// Says what is wrong, a line for each finding. The exit code: 0 nothing, 1 something, 2 wrong
// usage or configuration, 5 the ledger could not be read.
int verify(std::vector<std::string> arguments);

}  // namespace clawdforge
