#include "base/async/compute_worker.h"

#include <limits>

#include "base/refusals.h"

namespace clawdforge {
namespace {

// After the end of the gateway: nothing waits for the answer any more.
std::unexpected<Failure> compute_stopped() {
  return fail_for_now(Errc::unavailable, "interrupted", "The gateway is shutting down.",
                      std::chrono::seconds(5));
}

}  // namespace

// No limit: a request or a turn has at most one call here, and those have limits of their own. It
// never counts as stuck: a processor comes to an end.
ComputeWorker::ComputeWorker(IoExecutor executor)
    : Worker(executor, {.calls_max = std::numeric_limits<std::size_t>::max(),
                        .stall_max = std::chrono::hours(24),
                        .busy = compute_stopped,
                        .stalled = compute_stopped}) {}

}  // namespace clawdforge
