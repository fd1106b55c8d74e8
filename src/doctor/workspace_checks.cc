#include <fmt/format.h>

#include "doctor/checks.h"
#include "workspaces/workspace_look.h"

namespace clawdforge {

void check_workspaces(const Config& config, Diagnosis& diagnosis) {
  for (const auto& [name, workspace] : config.workspaces) {
    const WorkspaceLook look = look_at(workspace, config.data_dir);
    const std::string check = "workspace-" + name;
    if (look.why_not.empty()) {
      diagnosis.good(check, fmt::format("{}, {}", look.path, name_of(workspace.mode)));
    } else {
      diagnosis.warn(check, fmt::format("{} {}", workspace.path, look.why_not),
                     fmt::format("ls -ld {}   # or change [workspaces.{}] in the configuration",
                                 workspace.path, name));
    }
  }
}

}  // namespace clawdforge
