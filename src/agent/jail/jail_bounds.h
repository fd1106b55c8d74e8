// What a policy says of an agent's limits and network. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/policy.h"
#include "process/launch/child_plan.h"

namespace clawdforge {

// What JailMode::full has where the owner names no limits.
inline constexpr std::uint64_t kFullMemoryBytes = 3ULL << 30;
inline constexpr std::uint64_t kFullPids = 512;
// Of one file that a jailed agent writes.
inline constexpr std::uint64_t kJailFileBytesMax = 16ULL << 30;

// `policy` is the effective one, here and below.
TreeLimits tree_limits(const Policy& policy);
// At least proxy in JailMode::full.
NetMode net_mode(const Policy& policy);
// What an agent may reach with NetMode::proxy; where the owner names nothing, Claude's API.
std::vector<std::string> net_targets(const Policy& policy);

// Network, limits of files and calls of a jail.
void add_bounds(const Policy& policy, JailPlan& plan);
// The variables by which programs find the proxy.
void add_proxy_variables(std::map<std::string, std::string>& environment);

}  // namespace clawdforge
