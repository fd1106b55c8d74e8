#include "storage/disk/disk.h"

#include "base/refusals.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> disk_busy() {
  auto refused =
      fail_for_now(Errc::unavailable, "disk_busy",
                   "The gateway's disk is too slow for all that is asked; try again shortly.",
                   std::chrono::seconds(1));
  refused.error().cause = Cause::not_begun;
  return refused;
}

}  // namespace

Disk::Disk(IoExecutor executor)
    : Worker(executor, {.calls_max = kDiskJobsMax,
                        .lane_calls_max = kDiskJobsMaxPerApp,
                        .stall_max = kDiskStallMax,
                        .busy = disk_busy,
                        .stalled = disk_stalled}) {}

}  // namespace clawdforge
