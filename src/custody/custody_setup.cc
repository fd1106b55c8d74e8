#include "custody/custody_setup.h"

#include <algorithm>
#include <utility>

#include "agent/inventory/inventory.h"

namespace clawdforge {
namespace {

AgentSpec kept_spec(const std::vector<AgentSpec>& specs) {
  const auto named = std::ranges::find(specs, "claude", &AgentSpec::name);
  return named == specs.end() ? AgentSpec{} : *named;
}

std::string path_in(const Environment& environment) {
  const auto path = environment.find("PATH");
  return path == environment.end() ? "" : path->second;
}

}  // namespace

Custody::Options custody_options(CustodySetup setup) {
  const LoginDirs dirs = login_dirs(setup.data_dir, setup.chosen_dir);
  Custody::Options options;
  options.spec = kept_spec(setup.specs);
  options.login_dir = dirs.login;
  options.keeper_dir = dirs.keeper;
  if (setup.chosen_dir.empty()) {
    options.earlier_dir =
        login_dir_in(agent_environment(setup.environment, options.spec, {}), options.spec.login);
  }
  options.version = std::move(setup.version);
  options.jail = [jails = &setup.jails, policy = std::move(setup.policy), dirs,
                  command = options.spec.login.status_command, path = path_in(setup.environment)](
                     const std::string& dir) -> std::optional<JailPlan> {
    const Policy effective = policy();
    if (jails->mode_of(effective) == JailMode::off) return std::nullopt;
    // A lock is made beside the login's directory, too.
    const bool is_own = dir == dirs.login;
    const std::string above = dir.substr(0, dir.rfind('/'));
    return jails->plan({.commands = {command},
                        .own_dir = dirs.keeper,
                        .home_dir = is_own ? "" : jails->home(),
                        .visible = {{above, true}, {dir, true}}},
                       effective, path);
  };
  options.environment = std::move(setup.environment);
  return options;
}

}  // namespace clawdforge
