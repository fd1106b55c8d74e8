// Which jail the agents get, what of the data directory those see that have none, and what the
// owner is told of it at start.
#pragma once

#include <map>
#include <string>

#include "agent/jail/jail_planner.h"
#include "base/result.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "config/config.h"
#include "process/tree/spawner.h"

namespace clawdforge {

// What of the data directory agents do not see that have no root of their own.
// All of it but what an agent needs: its own directory, and its home where that lies below. Nothing
// is hidden where the data directory is the agents' home itself, because their logins are in it;
// the log then says what to change. It also says what of the gateway's lies elsewhere, where agents
// can read it.
HiddenDir hidden_dir(const Config& config, const std::map<std::string, std::string>& environment,
                     Log& log);

// The home of the gateway's user; empty: it is not known.
std::string home_of(const std::map<std::string, std::string>& environment);

// Where Claude has its files for all who have that home.
std::string claude_dir_of(const std::map<std::string, std::string>& environment);

// The strongest that is tried.
JailMeans jail_max(const Config& config);

JailPlanner::Options jail_options(const Config& config, const Spawner& spawner,
                                  const std::string& own_program,
                                  const std::map<std::string, std::string>& environment);

// By what an agent with this effective policy is jailed: own_root, landlock or none.
std::string_view jail_in_force(const Policy& policy, const JailPlanner& jails,
                               const Spawner& spawner);
std::string_view name_of(JailMeans means);
// For the log and the metrics.
std::string_view name_of(LimitMeans means);

// The gauges of by what agents are jailed and limited.
void show_jail(const Spawner& spawner, Metrics& metrics);

// A program that runs outside of its jail only: says what the owner can do.
void warn_of_jail(const std::string& program, std::string_view said, Log& log);

// Tells in the log by what agents are jailed, or why they are not. Errc::unavailable with a
// sentence for the operator where a jail is demanded that cannot be had.
Result<void> check_jail(const Config& config, const Spawner& spawner, Log& log);

}  // namespace clawdforge
