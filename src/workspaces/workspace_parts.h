// The inside of Workspaces: what it runs programs with.
#pragma once

#include <string>

#include "workspaces/git.h"
#include "workspaces/programs.h"
#include "workspaces/snapshots.h"
#include "workspaces/workspaces.h"

namespace clawdforge {

struct Workspaces::Parts {
  Parts(IoExecutor executor, Spawner& spawner, Disk& disk, Log& log, const std::string& data_dir)
      : programs(executor, spawner), git(programs, log), snapshots(data_dir, disk, git, log) {}

  Programs programs;
  Git git;
  Snapshots snapshots;
};

// One at a time works on a session's snapshot: git locks its index, and does not wait for it.
class Workspaces::Snapped {
 public:
  Snapped(Workspaces& all, std::string id) : all_(all), id_(std::move(id)) {}
  ~Snapped() {
    if (!is_held_) return;
    all_.snapped_.erase(id_);
    all_.snapped_changed_.notify_all();
  }
  Snapped(const Snapped&) = delete;
  Snapped& operator=(const Snapped&) = delete;

  Task<void> wait() {
    while (all_.snapped_.contains(id_)) co_await all_.snapped_changed_.wait();
    all_.snapped_.insert(id_);
    is_held_ = true;
  }

 private:
  Workspaces& all_;
  const std::string id_;
  bool is_held_ = false;
};

}  // namespace clawdforge
