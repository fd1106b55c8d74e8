#include "workspaces/workspace_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace clawdforge {
namespace {

std::string resolved_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr),
                                                          std::free);
  return found ? std::string(found.get()) : std::string();
}

// Either is the other, or lies in it.
bool overlap(std::string_view a, std::string_view b) {
  const auto holds = [](std::string_view outer, std::string_view inner) {
    return inner.starts_with(outer) &&
           (inner.size() == outer.size() || outer == "/" || inner[outer.size()] == '/');
  };
  return holds(a, b) || holds(b, a);
}

bool is_there(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0;
}

// A checkout, or a bare repository.
bool is_repository(const std::string& path) {
  return is_there(path + "/.git") || (is_there(path + "/HEAD") && is_there(path + "/objects"));
}

}  // namespace

WorkspaceLook look_at(const Workspace& workspace, const std::string& data_dir) {
  const std::string path = resolved_path(workspace.path);
  struct stat found{};
  if (path.empty() || ::stat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return {.path = {}, .why_not = "is not a directory"};
  }
  const std::string own = resolved_path(data_dir);
  if (overlap(path, own.empty() ? data_dir : own)) {
    return {.path = {}, .why_not = "holds the gateway's data directory, or lies in it"};
  }
  const int access = R_OK | X_OK | (workspace.mode == WorkspaceMode::direct ? W_OK : 0);
  if (::access(path.c_str(), access) != 0) {
    return {.path = {}, .why_not = "cannot be used by the gateway's user"};
  }
  if (workspace.mode == WorkspaceMode::worktree && !is_repository(path)) {
    return {.path = {}, .why_not = "is not a git repository, which mode worktree needs"};
  }
  return {.path = path, .why_not = {}};
}

}  // namespace clawdforge
