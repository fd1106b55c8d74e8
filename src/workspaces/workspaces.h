// Workspaces knows the directories of the owner's that apps may have worked on: [workspaces.NAME]
// of the configuration. Owned by the daemon; the disk and the log outlive it. Io thread only.
#pragma once

#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "model/workspace.h"

namespace clawdforge {

class Disk;

struct WorkspaceListing {
  std::string name;
  WorkspaceMode mode = WorkspaceMode::read;
  bool is_present = false;
};

class Workspaces {
 public:
  struct Dependencies {
    Disk& disk;
    Log& log;
  };
  Workspaces(Dependencies deps, NamedWorkspaces workspaces, std::string data_dir);

  // All of them, by name, as they are now. Errc::unavailable of the disk.
  Async<std::vector<WorkspaceListing>> list() const;
  // At start: warns of each that cannot be used.
  Task<void> report_absent();

 private:
  const Dependencies deps_;
  const NamedWorkspaces workspaces_;
  const std::string data_dir_;
};

}  // namespace clawdforge
