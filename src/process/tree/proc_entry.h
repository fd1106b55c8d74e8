// What /proc tells of a process. Every answer is of this moment: the process may end, and
// its id may be another's, right after it. Blocks for some microseconds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace clawdforge {

struct ProcEntry {
  char state = 0;  // 'Z': it has ended and is not reaped
  pid_t parent = 0;
  std::int64_t start_time = 0;  // in clock ticks since boot
};

// None: it is not there, or cannot be read.
std::optional<ProcEntry> proc_entry(pid_t pid);

// Those of all its threads, zombies included.
std::vector<pid_t> proc_children(pid_t pid);

// Now, as start times are counted: what is started from now on has none that is smaller.
std::int64_t ticks_since_boot();

// Tells this run of the kernel from the next one, in which pids and start times are given again.
// Empty: it cannot be read.
std::string read_boot_id();

}  // namespace clawdforge
