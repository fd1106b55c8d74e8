#include "daemon/jail_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

// Both without links, so that two names of one place are found to be equal.
bool is_below(const fs::path& path, const fs::path& above) {
  const auto [rest, unused] = std::ranges::mismatch(above, path);
  return rest == above.end();
}

// Not there, or not to be looked at: as it is written.
fs::path without_links(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : found;
}

void warn_of_ledger_elsewhere(const Config& config, const fs::path& data_dir, Log& log) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!config.ledger.starts_with(kScheme)) return;
  const std::string path = config.ledger.substr(kScheme.size());
  if (is_below(without_links(path), data_dir)) return;
  log.warn("agents can read the ledger: it is not in the data directory",
           {{"path", std::string_view(path)}});
}

// What a policy demands that only a root of an agent's own gives; empty: nothing.
std::string demand_of(const Policy& policy) {
  if (policy.jail && *policy.jail >= JailMode::files) {
    return fmt::format("jail = \"{}\"", name_of(*policy.jail));
  }
  if (policy.net && *policy.net != NetMode::open) {
    return fmt::format("net = \"{}\"", name_of(*policy.net));
  }
  return {};
}

// Of all that the configuration says.
std::string demand_in(const Config& config) {
  Policy all = config.bounds;
  all.jail = config.jail;
  if (std::string demand = demand_of(all); !demand.empty()) return demand;
  for (const auto& [name, agent] : config.agents) {
    if (std::string demand = demand_of(agent.policy); !demand.empty()) return demand;
  }
  return {};
}

bool limits_something(const Config& config) {
  const auto limits = [](const Policy& policy) {
    return policy.memory_max || policy.pids_max || policy.cpu_max_percent ||
           policy.jail == JailMode::full;
  };
  return limits(config.bounds) || config.jail == JailMode::full ||
         std::ranges::any_of(config.agents,
                             [&](const auto& agent) { return limits(agent.second.policy); });
}

// Why there cannot be a root of an agent's own, whatever the kernel allows; empty: nothing is in
// its way.
std::string_view own_obstacle(const Config& config) {
  if (config.claude_owner_settings) {
    return "claude_owner_settings is on, and the owner's own settings are outside of every jail";
  }
  if (config.pid_namespace == PidNamespace::off) {
    return "pid_namespace is off, and a jail needs one";
  }
  return {};
}

// At start: by what limits are held, and which cannot be.
void tell_limits(const Config& config, const Spawner& spawner, Log& log) {
  const std::string_view means = name_of(spawner.limit_means());
  const std::string& why = spawner.limit_obstacle();
  if (!limits_something(config)) {
    log.info("no limits on the memory and processes of agents are named",
             {{"means", means}, {"reason", std::string_view(why)}});
    return;
  }
  if (spawner.limit_means() == LimitMeans::nothing) {
    log.warn("limits on agents are not held: there are neither control groups nor PID namespaces",
             {{"reason", std::string_view(why)}});
    return;
  }
  log.info("limits on agents are held", {{"means", means}, {"reason", std::string_view(why)}});
  const bool wants_processor =
      config.bounds.cpu_max_percent || std::ranges::any_of(config.agents, [](const auto& agent) {
        return agent.second.policy.cpu_max_percent.has_value();
      });
  if (wants_processor && !spawner.limits_processor()) {
    log.warn("cpu_max_percent is not held: it needs control groups");
  }
}

}  // namespace

std::string_view name_of(JailMeans means) {
  switch (means) {
    case JailMeans::own_root:
      return "own_root";
    case JailMeans::rules:
      return "landlock";
    case JailMeans::none:
      return "none";
  }
  return "none";
}

std::string_view jail_in_force(const Policy& policy, const JailPlanner& jails,
                               const Spawner& spawner) {
  const bool is_off = jails.mode_of(policy) == JailMode::off;
  return name_of(is_off ? JailMeans::none : spawner.jail_means());
}

std::string_view name_of(LimitMeans means) {
  switch (means) {
    case LimitMeans::nothing:
      return "nothing";
    case LimitMeans::counting:
      return "counting";
    case LimitMeans::cgroup1:
      return "cgroup1";
    case LimitMeans::cgroup2:
      return "cgroup2";
  }
  return "nothing";
}

std::string home_of(const std::map<std::string, std::string>& environment) {
  const auto home = environment.find("HOME");
  return home == environment.end() ? "" : home->second;
}

std::string claude_dir_of(const std::map<std::string, std::string>& environment) {
  const auto named = environment.find("CLAUDE_CONFIG_DIR");
  return named == environment.end() || named->second.empty() ? home_of(environment) + "/.claude"
                                                             : named->second;
}

HiddenDir hidden_dir(const Config& config, const std::map<std::string, std::string>& environment,
                     Log& log) {
  const fs::path data_dir = without_links(config.data_dir);
  warn_of_ledger_elsewhere(config, data_dir, log);
  HiddenDir hidden{.path = config.data_dir, .kept = {}};
  const std::string named = home_of(environment);
  const fs::path home = named.empty() ? "" : without_links(named);
  if (home == data_dir) {
    log.warn(
        "agents can read the data directory: it is their home; set data_dir to a directory below",
        {{"path", std::string_view(config.data_dir)}});
    return {};
  }
  if (is_below(home, data_dir))
    hidden.kept.push_back(config.data_dir + "/" + home.lexically_relative(data_dir).string());
  return hidden;
}

JailMeans jail_max(const Config& config) {
  return own_obstacle(config).empty() ? JailMeans::own_root : JailMeans::none;
}

JailPlanner::Options jail_options(const Config& config, const Spawner& spawner,
                                  const std::string& own_program,
                                  const std::map<std::string, std::string>& environment) {
  JailPlanner::Options options{.data_dir = config.data_dir,
                               .own_program = own_program,
                               .environment = environment,
                               .is_own_root = spawner.jail_means() == JailMeans::own_root,
                               .is_off = spawner.jail_means() == JailMeans::none};
  for (const auto& [name, server] : config.mcp_servers) {
    if (!server.command.empty()) options.commands.push_back(server.command);
  }
  return options;
}

void show_jail(const Spawner& spawner, Metrics& metrics) {
  for (const JailMeans means : {JailMeans::own_root, JailMeans::rules, JailMeans::none}) {
    metrics
        .gauge("clawdforge_jail_mode", "By what agents are jailed that are to be.",
               {{"mode", std::string(name_of(means))}})
        .set(spawner.jail_means() == means ? 1 : 0);
  }
  for (const LimitMeans means :
       {LimitMeans::nothing, LimitMeans::counting, LimitMeans::cgroup1, LimitMeans::cgroup2}) {
    metrics
        .gauge("clawdforge_limit_means", "By what limits on agents are held.",
               {{"means", std::string(name_of(means))}})
        .set(spawner.limit_means() == means ? 1 : 0);
  }
}

void warn_of_jail(const std::string& program, std::string_view said, Log& log) {
  log.warn(
      "a program runs, but not in its jail: name what it needs to see in jail_read, or set jail = "
      "\"off\" for its agent",
      {{"program", std::string_view(program)}, {"said", said}});
}

Result<void> check_jail(const Config& config, const Spawner& spawner, Log& log) {
  const std::string_view own = own_obstacle(config);
  const std::string reason = own.empty() ? spawner.jail_obstacle() : std::string(own);
  const std::string demand = demand_in(config);
  if (!demand.empty() && config.jail == JailMode::off) {
    return fail(
        Errc::unavailable, "no_jail",
        fmt::format("The agents cannot have the jail that {} demands: jail is off.", demand));
  }
  if (!demand.empty() && spawner.jail_means() != JailMeans::own_root) {
    return fail(Errc::unavailable, "no_jail",
                fmt::format("The agents cannot have the jail that {} demands: {}; "
                            "jail = \"auto\" and net = \"open\" do without.",
                            demand, reason));
  }
  tell_limits(config, spawner, log);
  if (config.jail == JailMode::off) {
    log.warn("agents are not jailed: they can read what the gateway's user can; jail is off");
    return {};
  }
  switch (spawner.jail_means()) {
    case JailMeans::own_root:
      log.info("agents are jailed: each has a root of its own");
      return {};
    case JailMeans::rules:
      log.warn(
          "agents are jailed by Landlock only, which is weaker: their own sandboxes do not work in "
          "it, and docs/security.md names what it leaves open",
          {{"reason", std::string_view(reason)}});
      return {};
    case JailMeans::none:
      break;
  }
  log.warn("agents are not jailed: they can read what the gateway's user can",
           {{"reason", std::string_view(reason)}});
  return {};
}

}  // namespace clawdforge
