// Disk does what may block on a disk, on a thread of its own, in order of arrival. The io
// thread asks and awaits the answer. Owned by the daemon; stop() or the destructor
// finishes what is queued, and must come before the end of the io_context.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/async.h"

namespace clawdforge {

// How many calls may wait. What is posted does not count: each such piece follows a call
// of the same run or upload that was answered before, so there are never more of them
// than of those.
inline constexpr std::size_t kDiskJobsMax = 4'096;

class Disk {
 public:
  explicit Disk(IoExecutor executor);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Runs `work` on the disk's thread. It owns all it needs, because whoever asked may be
  // gone by then. Cannot be cancelled. Errc::unavailable "disk_busy" when too much waits
  // already, and after stop().
  Async<void> call(std::move_only_function<Result<void>()> work);

  // Nobody waits for it: cleaning up. Dropped only when stop() was called before. Any thread.
  void post(std::move_only_function<void()> work);

  // The same in pieces: a step that gives true is done again behind what waits by then, so
  // that a long piece of work delays the others by one step only.
  void post_in_steps(std::move_only_function<bool()> step);

  // Blocks until all that was asked is done; may be called again.
  void stop();

 private:
  class Works;

  const IoExecutor executor_;
  std::unique_ptr<Works> works_;
};

}  // namespace clawdforge
