// The agents of the configuration, as this process sees them: without asking a gateway.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/agent.h"

namespace clawdforge {

std::vector<AgentSpec> local_specs(const Config& config,
                                   const std::map<std::string, std::string>& environment);
std::vector<AgentReport> local_agents(const Config& config,
                                      const std::map<std::string, std::string>& environment);

}  // namespace clawdforge
