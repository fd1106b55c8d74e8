// The inside of Workspaces: what it runs programs with.
#pragma once

#include <string>
#include <utility>

#include "workspaces/git.h"
#include "workspaces/programs.h"
#include "workspaces/snapshots.h"
#include "workspaces/workspaces.h"

namespace clawdforge {

struct Workspaces::Parts {
  Parts(IoExecutor executor, Spawner& spawner, Disk& disk, Log& log, const std::string& data_dir,
        GitJail git_jail)
      : programs(executor, spawner),
        git(programs, disk, log, std::move(git_jail)),
        snapshots(data_dir, disk, git, log) {}

  Programs programs;
  Git git;
  Snapshots snapshots;
};

// One at a time works on a session's snapshot: git locks its index, and does not wait for it. By
// the path of a repository: adds a worktree to it, because git reads the entries of all others and
// fails at one that is only half there.
class Workspaces::Snapped {
 public:
  Snapped(Workspaces& all, std::string id) : all_(all), id_(std::move(id)) {}
  ~Snapped() { end(); }
  Snapped(const Snapped&) = delete;
  Snapped& operator=(const Snapped&) = delete;

  Task<void> wait() {
    while (all_.snapped_.contains(id_)) co_await all_.snapped_changed_.wait();
    all_.snapped_.insert(id_);
    is_held_ = true;
  }

  void end() {
    if (!is_held_) return;
    is_held_ = false;
    all_.snapped_.erase(id_);
    all_.snapped_changed_.notify_all();
  }

 private:
  Workspaces& all_;
  const std::string id_;
  bool is_held_ = false;
};

}  // namespace clawdforge
