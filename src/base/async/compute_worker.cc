#include "base/async/compute_worker.h"

#include "base/refusals.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> compute_busy() {
  return fail_for_now(Errc::unavailable, "compute_busy",
                      "Too many large texts wait to be read; try again shortly.",
                      std::chrono::seconds(1));
}

}  // namespace

// It never counts as stuck: a processor comes to an end.
ComputeWorker::ComputeWorker(IoExecutor executor)
    : Worker(executor, {.calls_max = kComputeWaitingMax,
                        .lane_calls_max = kComputeWaitingMaxPerApp,
                        .stall_max = std::chrono::hours(24),
                        .busy = compute_busy,
                        .stalled = compute_busy}) {}

}  // namespace clawdforge
