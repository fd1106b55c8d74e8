#include "workspaces/workspaces.h"

#include <utility>

#include "storage/disk/disk.h"
#include "workspaces/workspace_look.h"

namespace clawdforge {

Workspaces::Workspaces(Dependencies deps, NamedWorkspaces workspaces, std::string data_dir)
    : deps_(deps), workspaces_(std::move(workspaces)), data_dir_(std::move(data_dir)) {}

Async<std::vector<WorkspaceListing>> Workspaces::list() const {
  if (workspaces_.empty()) co_return std::vector<WorkspaceListing>();
  co_return co_await deps_.disk.call(
      Lane(), [all = workspaces_, own = data_dir_]() -> Result<std::vector<WorkspaceListing>> {
        std::vector<WorkspaceListing> listings;
        for (const auto& [name, workspace] : all) {
          listings.push_back({name, workspace.mode, look_at(workspace, own).why_not.empty()});
        }
        return listings;
      });
}

Task<void> Workspaces::report_absent() {
  for (const auto& [name, workspace] : workspaces_) {
    const auto look = co_await deps_.disk.call(
        Lane(), [wanted = workspace, own = data_dir_]() -> Result<WorkspaceLook> {
          return look_at(wanted, own);
        });
    if (!look || look->why_not.empty()) continue;
    deps_.log.warn("a workspace cannot be used, and is answered 503 until it can",
                   {{"workspace", std::string_view(name)},
                    {"path", std::string_view(workspace.path)},
                    {"why", std::string_view("it " + look->why_not)}});
  }
}

}  // namespace clawdforge
