// Cgroups makes a control group for each tree that has limits: of version 2 where the gateway's own
// group was given to it (systemd: Delegate=), else of version 1 where it runs as root. What it
// makes lies below the gateway's own group, so that the limits of that hold, too. Owned by the
// Spawner; its thread. Each call is a few writes to the kernel, less than a millisecond.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/launch/child_plan.h"
#include "process/launch/tree_bounds.h"

namespace clawdforge {

class Cgroups {
 public:
  // Where the kernel tells of them; a test has others.
  struct Places {
    std::string own_groups = "/proc/self/cgroup";
    std::string mounts = "/proc/self/mountinfo";
    bool is_root = false;
    bool only_looks = false;  // nothing is made, moved or removed
  };

  // Looks for groups that can be made, and removes those of gateways that are gone. With version 2
  // the calling process moves into a group of its own below the one that it is in: no group may
  // hold both processes and groups with limits.
  static Cgroups find(const Places& places);

  // counting: none can be made.
  LimitMeans means() const { return means_; }
  bool has_processor() const;
  // Why there are none, or none of version 2; empty: nothing is to be said.
  const std::string& obstacle() const { return obstacle_; }

  // One for each limit, written into `bounds`. Errc::unavailable "no_resources".
  Result<void> make(const TreeLimits& limits, TreeBounds& bounds);
  // When the tree is gone. False: the kernel still holds one; try again shortly. What is left in
  // the end goes with the next start.
  static bool remove(const TreeBounds& bounds);

 private:
  struct Mount;

  void use_version_2(const std::string& dir, bool only_looks);
  void use_version_1(const std::map<std::string, std::string>& dirs);
  void remove_old(const std::string& dir) const;
  std::string dir_for(const std::string& controller) const;

  LimitMeans means_ = LimitMeans::counting;
  std::string obstacle_;
  // By controller: where the groups of trees are made.
  std::map<std::string, std::string> dirs_;
  std::uint64_t last_number_ = 0;
};

}  // namespace clawdforge
