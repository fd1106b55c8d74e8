// `clawdforge doctor`: looks at the machine, the configuration, the data directory, the network and
// the agents, beside a running gateway or without one, and says what is wrong and what to do. It
// changes nothing. Blocks; a command of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace clawdforge {

// What it asks of a running gateway. The command line knows how.
struct DoctorLinks {
  // The gateway's answer to its admin.
  std::function<Result<std::string>(const std::string& data_dir, const std::string& target)> get;
  // One real question to an agent; gives its answer.
  std::function<Result<std::string>(const std::string& data_dir, const std::string& agent)> ask;
};

// `arguments`: --ask, --json, and all flags of `serve`. The exit code: 0 all is good, 1 there are
// warnings, 2 something is bad.
int doctor(std::vector<std::string> arguments, const DoctorLinks& links);

}  // namespace clawdforge
