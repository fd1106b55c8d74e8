// What one child is to be: its program, and what it sees of the machine. Plain records.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace clawdforge {

// A directory of which trees see only their own part, where the kernel allows mount namespaces.
struct HiddenDir {
  std::string path;               // absolute; empty: none is hidden
  std::vector<std::string> kept;  // directories below it that all trees see
};

// For the KILL of a tree that is busy, beside its grace.
inline constexpr std::chrono::seconds kBusyKillMax{15};

// While `path` exists, a tree that was asked to end is saving something that a KILL would destroy,
// such as a login that its maker has just renewed.
struct BusyPath {
  std::string path;  // absolute; empty: none
  std::chrono::milliseconds wait_max = kBusyKillMax;
};

// One thing in the root of a jailed tree. Its path is the same inside as outside.
struct JailPlace {
  enum class Kind {
    read,           // must be there, as for write
    read_if_there,  // left out where it is not there
    write,
    cover,      // an empty directory over what is there
    temporary,  // an empty directory in memory, which can be written
    link        // a symbolic link to `target`
  };
  Kind kind = Kind::read;
  std::string path;  // absolute; but for a link's, no part of it is a symbolic link
  std::string target = {};

  bool operator==(const JailPlace&) const = default;
};

// Which network a jailed tree has. proxy: its own loopback, with a listener of the gateway's.
enum class TreeNet { open, proxy, none };

// What a jailed tree sees. A parent stands before what is below it.
struct JailPlan {
  std::vector<JailPlace> places;
  TreeNet net = TreeNet::open;       // another than open needs a root of its own
  bool has_call_filter = false;      // system calls that no agent needs are refused
  std::uint64_t file_bytes_max = 0;  // of one file that it writes; zero: no limit
};

// What one tree may use; none: no limit.
struct TreeLimits {
  std::optional<std::uint64_t> memory_max = {};  // bytes
  std::optional<std::uint64_t> pids_max = {};
  std::optional<std::uint64_t> cpu_max_percent = {};  // of one processor

  bool has_any() const { return memory_max || pids_max || cpu_max_percent; }
};

struct ChildPlan {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `environment`
  std::map<std::string, std::string> environment;  // all of it: nothing of ours is added
  std::string working_dir;
  BusyPath busy = {};
  std::string own_dir = {};    // below the hidden directory, and seen by this tree; empty: none
  std::string also_kept = {};  // likewise, if it lies below that directory
  bool sees_hidden = false;    // a program of ours that works on what is in there
  // None: it is not jailed. What the jail is made of is for the Spawner to decide.
  std::optional<JailPlan> jail = {};
  TreeLimits limits = {};
  std::string owner = {};  // whose tree it is, for those who are told that it was over a limit
};

// By what means a jailed tree is kept to its places. From the weakest to the strongest.
enum class JailMeans { none, rules, own_root };

// By what means a tree's limits are held. counting: the launcher looks a few times a second, and
// ends a tree that is over; nothing: there is no PID namespace to count in.
enum class LimitMeans { nothing, counting, cgroup1, cgroup2 };

}  // namespace clawdforge
