// What of the data directory the agents do not see.
#pragma once

#include <map>
#include <string>

#include "base/telemetry/log.h"
#include "config/config.h"
#include "process/tree/spawner.h"

namespace clawdforge {

// All of it but what an agent needs: its own directory, and its home where that lies below. Nothing
// is hidden where the data directory is the agents' home itself, because their logins are in it;
// the log then says what to change. It also says what of the gateway's lies elsewhere, where agents
// can read it.
HiddenDir hidden_dir(const Config& config, const std::map<std::string, std::string>& environment,
                     Log& log);

}  // namespace clawdforge
