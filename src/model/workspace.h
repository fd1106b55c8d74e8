// A workspace is a directory of the owner's that apps may have worked on, such as a repository.
// Plain records, no I/O.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace clawdforge {

// How an agent gets it: it sees the directory and cannot write there; it works in the directory
// itself; it has a copy of its own; it has a git worktree and a branch of its own.
enum class WorkspaceMode { read, direct, copy, worktree };

inline constexpr std::array<std::string_view, 4> kWorkspaceModeNames = {"read", "direct", "copy",
                                                                        "worktree"};
inline std::string_view name_of(WorkspaceMode mode) {
  return name_among(kWorkspaceModeNames, mode);
}
inline std::optional<WorkspaceMode> workspace_mode_from(std::string_view name) {
  return value_among<WorkspaceMode>(kWorkspaceModeNames, name);
}

// [workspaces.NAME] of the configuration.
struct Workspace {
  std::string path;  // absolute
  WorkspaceMode mode = WorkspaceMode::read;
  std::string branch = "clawdforge/{app}/{session}";  // of a worktree
  std::vector<std::string> setup = {};  // run once in a new copy or worktree; empty: nothing
};

// A directory outside the data directory that one agent must see.
struct VisiblePath {
  std::string path;  // absolute
  bool is_writable = false;
};

using NamedWorkspaces = std::map<std::string, Workspace>;

// What a session has of a workspace; the ledger keeps it. Paths are absolute.
struct SessionWorkspace {
  std::string name = {};  // empty: it has none, but a directory of its own
  WorkspaceMode mode = WorkspaceMode::copy;
  std::string path = {};        // the owner's directory
  std::string repository = {};  // of a worktree: the directory of git that has its branch
  std::string git_dir = {};     // of a worktree: its own directory in there
  std::string branch = {};      // of a worktree
  std::string base = {};        // the tree or commit that it began with; empty: nothing

  // Its agent works in the owner's directory itself.
  bool is_shared() const {
    return !name.empty() && (mode == WorkspaceMode::read || mode == WorkspaceMode::direct);
  }
  bool operator==(const SessionWorkspace&) const = default;
};

// A git worktree that a session or run has in a repository of the owner's.
struct Worktree {
  std::string owner_id;    // of the session or run
  std::string repository;  // as in SessionWorkspace, and all below
  std::string path;
  std::string branch;
  bool keeps_branch = false;  // when the worktree goes
};

}  // namespace clawdforge
