#include "doctor/local_agents.h"

#include <filesystem>

#include "agent/inventory/inventory.h"
#include "agent/jail/program_path.h"
#include "config/agents/agent_specs.h"

namespace clawdforge {

std::vector<AgentSpec> local_specs(const Config& config,
                                   const std::map<std::string, std::string>& environment) {
  const auto path = environment.find("PATH");
  std::error_code error;
  return agent_specs(
      config,
      [&](const std::string& name) {
        return find_program(name, path == environment.end() ? "" : path->second);
      },
      std::filesystem::read_symlink("/proc/self/exe", error).string());
}

std::vector<AgentReport> local_agents(const Config& config,
                                      const std::map<std::string, std::string>& environment) {
  const auto table = config.agents.find("claude");
  const LoginDirs dirs =
      login_dirs(config.data_dir, table == config.agents.end() ? "" : table->second.login_dir);
  return take_inventory(
      {local_specs(config, environment), environment, config.acpx_bin, dirs.login, dirs.keeper});
}

}  // namespace clawdforge
