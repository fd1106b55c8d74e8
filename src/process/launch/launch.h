// Starting one launcher: pipes, posix_spawn, pidfd. No event loop here; what it gives are
// plain descriptors, all closed on exec. posix_spawn shares our memory with the child
// until its exec, so it costs the same whatever our size.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "process/launch/child_plan.h"
#include "process/launch/tree_bounds.h"

namespace clawdforge {

struct LaunchOptions {
  int launcher_file = -1;
  bool in_namespace = false;
  HiddenDir hidden;                             // its path is empty: nothing is hidden
  JailMeans jail = JailMeans::none;             // of the plans that want one
  std::optional<std::uint32_t> inside_id = {};  // the user in a root of its own; none: as outside
  std::chrono::milliseconds kill_grace{0};
  std::optional<std::uint64_t> descriptors_soft;
};

// A launcher that runs, and our ends of its pipes; those that we read and write do not
// block. Its owner must reap it.
struct Launched {
  pid_t pid = 0;
  Descriptor pidfd;
  Descriptor lifeline;  // closing it ends the tree
  Descriptor input;
  Descriptor output;
  Descriptor errors;
  Descriptor report;
  Descriptor outlet;  // on which the listener of its network comes; not open: there is none
};

// With an empty argv the launcher only tries whether a program could be started.
// Errc::unavailable "no_resources"; Errc::too_large "arguments_too_large".
Result<Launched> launch(const LaunchOptions& options, const ChildPlan& plan,
                        const TreeBounds& bounds = {});

// A program of root gets the capabilities of root at its start. Takes those away that the launcher
// has no use for, from all that this thread starts from here on; our own stay. Done once before
// the first launch, because each costs more than a microsecond, and the launcher would have to take
// them from each program. Of an ordinary user, which has none, it changes nothing.
void leave_launcher_capabilities();

// The system refuses what a process needs; waiting helps.
std::unexpected<Failure> no_resources(std::string detail);

// Ends a launcher at once, with what it has started so far, and reaps it. For one that
// has only just been launched.
void abandon(Launched launched);

// The same open file under a number that is out of the way of those which the launcher
// expects. Not open if there is none left.
Descriptor move_out_of_the_way(Descriptor low);

}  // namespace clawdforge
