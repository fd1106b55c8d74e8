// What the gateway does for workspaces, and for what its disk keeps.
#include "agent/core/agent_environment.h"
#include "daemon/gateway.h"

namespace clawdforge {

Workspaces::Options Gateway::workspace_options() const {
  return {.workspaces = deps_.config.workspaces,
          .data_dir = deps_.data_dir.path(),
          .environment = plain_environment(deps_.environment, {})};
}

// What an earlier life has left in repositories goes, and what cannot be used is named.
Task<void> Gateway::tidy_workspaces() {
  const auto swept = co_await workspaces_.sweep();
  if (!swept && !is_ending_) {
    deps_.log.warn("worktrees of an earlier life are left to the sweeper",
                   {{"why", std::string_view(swept.error().detail)}});
  }
  co_await workspaces_.report_absent();
}

// Removes what could not be removed when its time had come. It first waits until the disk has done
// what the sweep asked for before, so that jobs do not pile up for a disk that is slow or stuck.
Async<void> Gateway::tidy_disk() {
  const auto answered = co_await deps_.disk.call(Lane(), []() -> Result<void> { return {}; });
  if (!answered) co_return std::unexpected(answered.error());
  run_dirs_.remove_again();
  session_dirs_.remove_again();
  workspaces_.remove_again();
  trash_.remove_again();
  upload_files_.remove_again();
  co_return Result<void>{};
}

}  // namespace clawdforge
