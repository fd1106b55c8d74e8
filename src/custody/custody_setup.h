// Where a gateway keeps the login of its agents, and who renews it: what Custody is made with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_environment.h"
#include "agent/jail/jail_planner.h"
#include "custody/custody.h"
#include "model/policy.h"

namespace clawdforge {

struct CustodySetup {
  std::string data_dir;
  std::string chosen_dir;  // for the login; empty: one in the data directory
  const std::vector<AgentSpec>& specs;
  Environment environment;  // ours
  std::function<std::optional<std::string>()> version;
  const JailPlanner& jails;  // outlives what is made
  std::function<Policy()> policy;
};

// For the agent `claude`, and all that have its login.
Custody::Options custody_options(CustodySetup setup);

}  // namespace clawdforge
