// ComputeWorker does work that takes the processor long, such as parsing or making a large JSON
// text, so that the io thread goes on with everything else meanwhile. Owned by the daemon.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "base/async/worker.h"

namespace clawdforge {

// Work on a shorter text is done at once on the io thread: the way to another thread and back costs
// more than it takes.
inline constexpr std::size_t kComputeBytesMin = 256 * 1024;

class ComputeWorker final : public Worker {
 public:
  explicit ComputeWorker(IoExecutor executor);

  // Gives what `work` makes of `text`: a Result. Both are the worker's meanwhile.
  template <class Work>
  auto run(std::string text, Work work) -> Task<std::invoke_result_t<Work&, std::string&>> {
    if (text.size() < kComputeBytesMin) co_return work(text);
    co_return co_await call(
        [text = std::move(text), work = std::move(work)]() mutable { return work(text); });
  }
};

}  // namespace clawdforge
