// Whether a workspace can be used now. Blocks: for the disk's thread, and for the doctor.
#pragma once

#include <string>

#include "model/workspace.h"

namespace clawdforge {

struct WorkspaceLook {
  std::string path;     // of the directory itself, with all links resolved; empty: not usable
  std::string why_not;  // the end of a sentence about it, for the owner; empty: usable
};

// `data_dir` is the gateway's own, which no workspace may hold, nor lie in.
WorkspaceLook look_at(const Workspace& workspace, const std::string& data_dir);

}  // namespace clawdforge
