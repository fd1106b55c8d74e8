// Which environment variables an agent's process gets. Pure. An allow-list decides: what is
// not named here, in the agent's spec or in the owner's configuration does not pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/agent.h"

namespace clawdforge {

using Environment = std::map<std::string, std::string>;

// Of our environment, what any program needs, and the names in `more`. Nothing that begins
// with CLAWDFORGE_ passes, even if it is named.
Environment plain_environment(const Environment& ours, const std::vector<std::string>& more);

// The same for an agent: what its spec names, the spec's defaults where we have no value, and
// the values that the owner has set. What the spec forces beats those, and so do the directories
// for temporary files.
Environment agent_environment(const Environment& ours, const AgentSpec& spec,
                              const std::string& temp_dir);

// Where an agent with this environment has its login.
std::string login_dir_in(const Environment& environment, const LoginSpec& login);

// What is there while one of the agents renews its login.
std::vector<std::string> refresh_locks(const std::vector<AgentSpec>& specs,
                                       const Environment& ours);

// The values in an environment that must not be shown.
std::vector<std::string> secrets_in(const Environment& environment);

}  // namespace clawdforge
