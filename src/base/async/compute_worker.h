// ComputeWorker does work that takes the processor long, such as parsing or making a large JSON
// text, so that the io thread goes on with everything else meanwhile. Owned by the daemon.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "base/async/fair_queue.h"
#include "base/async/worker.h"

namespace clawdforge {

// Work on a shorter text is done at once on the io thread: the way to another thread and back costs
// more than it takes.
inline constexpr std::size_t kComputeBytesMin = 256 * 1024;

// Texts that wait for the worker, of all apps and of one; one more is refused.
inline constexpr std::size_t kComputeWaitingMax = 1'024;
inline constexpr std::size_t kComputeWaitingMaxPerApp = lane_share_of(kComputeWaitingMax);

class ComputeWorker final : public Worker {
 public:
  explicit ComputeWorker(IoExecutor executor);

  // Gives what `work` makes of `text`: a Result. Both are the worker's meanwhile. The lane is that
  // of the app whose text it is. Errc::unavailable "compute_busy" when too many wait.
  template <class Work>
  auto run(Lane lane, std::string text, Work work)
      -> Task<std::invoke_result_t<Work&, std::string&>> {
    if (text.size() < kComputeBytesMin) co_return work(text);
    co_return co_await call(
        std::move(lane),
        [text = std::move(text), work = std::move(work)]() mutable { return work(text); });
  }
};

}  // namespace clawdforge
