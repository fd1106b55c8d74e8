// The commands of the daemon: `serve` and `config`. Each returns the exit code.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/local_gateway.h"

namespace clawdforge {

// 0 drained, 1 it did not start, 2 a bad flag, key or value.
int serve(std::vector<std::string> flags);

// Prints the effective configuration.
int print_config(std::vector<std::string> flags);

// The gateway that runs on this machine, by the same configuration. `data_dir` replaces the
// configured one unless empty.
Result<LocalGateway> find_local_gateway(const std::string& data_dir);

}  // namespace clawdforge
