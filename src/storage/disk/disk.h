// Disk is the Worker for everything that may block on a disk. Owned by the daemon.
//
// A call is answered Errc::unavailable "disk_busy" when too many wait already, after stop(), and
// while the disk is stuck: it was not begun and never will be. "disk_stalled" when the disk got
// stuck in it: it may still be done, before what is asked or posted from then on.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/async/fair_queue.h"
#include "base/async/worker.h"

namespace clawdforge {

// How many calls may wait, of all apps and of one. What is posted does not count: each such piece
// follows a call of the same run or upload that was answered before, so there are never more of
// them than of those.
inline constexpr std::size_t kDiskJobsMax = 4'096;
inline constexpr std::size_t kDiskJobsMaxPerApp = lane_share_of(kDiskJobsMax);
// How long one of them may take before the disk counts as stuck. A large tree is removed in
// many steps, so none takes long.
inline constexpr std::chrono::seconds kDiskStallMax{10};

class Disk final : public Worker {
 public:
  explicit Disk(IoExecutor executor);
};

// What an error of a call means: false: nothing of it was done, so nothing is to be undone.
inline bool was_begun(const Failure& failure) { return failure.cause != Cause::not_begun; }

}  // namespace clawdforge
