// A workspace is a directory of the owner's that apps may have worked on, such as a repository.
// Plain records, no I/O.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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

// Letters of a branch's name that git takes anywhere, and the two marks. The session's id makes
// each branch another one.
inline bool is_branch_pattern(std::string_view text) {
  constexpr std::size_t kBranchBytesMax = 100;
  std::string name(text);
  for (const std::string_view mark : {"{app}", "{session}"}) {
    const std::size_t at = name.find(mark);
    if (at != name.npos) name.replace(at, mark.size(), "x");
  }
  const bool has_odd_part = name.starts_with('/') || name.ends_with('/') || name.contains("//") ||
                            name.contains("..") || name.contains("/.") || name.starts_with('.') ||
                            name.ends_with('.') || name.starts_with('-') || name.contains(".lock");
  return text.size() <= kBranchBytesMax && text.contains("{session}") && !has_odd_part &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '/' || c == '.';
         });
}

// A directory outside the data directory that one agent must see.
struct VisiblePath {
  std::string path;  // absolute
  bool is_writable = false;
  bool is_held = false;  // an agent that could write there is not started
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

// A workspace of mode `read`, where nothing would hold the agent to that.
inline std::unexpected<Failure> jail_needed() {
  return fail(Errc::invalid, "jail_needed",
              "Nothing on this machine would keep the agent from writing to this workspace, "
              "which may only be read: the gateway's owner has to turn the jail on.");
}

// A git worktree that a session or run has in a repository of the owner's.
struct Worktree {
  std::string owner_id;    // of the session or run
  std::string repository;  // as in SessionWorkspace, and all below
  std::string path;
  std::string branch;
  bool keeps_branch = false;  // when the worktree goes
};

}  // namespace clawdforge
