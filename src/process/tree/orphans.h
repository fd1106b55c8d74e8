// Orphans are what a launcher leaves when it is killed: processes of its tree that have lost
// everyone above them. As our process is the subreaper of its descendants, they become its
// children; here they are told from its other children, killed and reaped. Owned by the
// Spawner, io thread only.
//
// Only our own children are signalled, by their ids, which no other process can have before
// we have reaped them. What is below them comes to us as they die, and is found by the next look.
// What is below a living launcher stays there: it is a subreaper itself. The kernel moves orphans
// before it tells of their launcher's end, so a look after that misses none.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace clawdforge {

class Orphans {
 public:
  struct Look {
    std::size_t left = 0;   // killed, and not ended yet
    std::size_t ended = 0;  // and reaped
    bool is_over() const { return left == 0 && ended == 0; }
  };

  // Makes this process the subreaper of its descendants, for good. The children that it has
  // by now are strangers, and are left alone. Errc::unavailable "no_subreaper".
  static Result<Orphans> adopt();

  // A tree that was begun at `since` or later, in clock ticks since boot, may have left some.
  // It stays suspected until a look has found nothing.
  void suspect(std::int64_t since);
  bool are_suspected() const { return since_.has_value(); }

  // Kills and reaps every child that is not one of `launchers`, no stranger, and not older
  // than the trees under suspicion. To be repeated until it is over. Never waits.
  Look look(const std::set<pid_t>& launchers);

 private:
  explicit Orphans(Descriptor children) : children_(std::move(children)) {}

  std::vector<pid_t> list() const;

  Descriptor children_;  // the kernel's list; open, because descriptors may run out
  std::set<pid_t> strangers_;
  std::optional<std::int64_t> since_;
};

}  // namespace clawdforge
