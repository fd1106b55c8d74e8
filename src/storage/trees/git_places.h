// What git opens when it works in a repository, so that it can be shown just that. Blocks: for the
// disk's thread.
#pragma once

#include <string>
#include <vector>

namespace clawdforge {

// `path` is a checkout, a directory of git, or any other. It comes first; then the directory of git
// that it leads to, the one that several worktrees have in common, and where further objects are.
// What is not there is left out.
std::vector<std::string> git_places(const std::string& path);

}  // namespace clawdforge
