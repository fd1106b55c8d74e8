// Disk does what may block on a disk, on a thread of its own, in order of arrival. The io
// thread asks and awaits the answer. Owned by the daemon; stop() or the destructor
// finishes what is queued, and must come before the end of the io_context.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/async.h"

namespace clawdforge {

// How many calls may wait. What is posted does not count: each such piece follows a call
// of the same run or upload that was answered before, so there are never more of them
// than of those.
inline constexpr std::size_t kDiskJobsMax = 4'096;
// How long one of them may take before the disk counts as stuck. A large tree is removed in
// many steps, so none takes long.
inline constexpr std::chrono::seconds kDiskStallMax{10};

class Disk {
 public:
  explicit Disk(IoExecutor executor);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Runs `work` on the disk's thread. It owns all it needs, because whoever asked may be
  // gone by then. Cannot be cancelled. Errc::unavailable "disk_busy" when too much waits
  // already, after stop(), and when the disk is stuck: it was not begun and never will be.
  // "disk_stalled" when the disk got stuck in it: it may still be done, before what is asked or
  // posted from then on.
  Async<void> call(std::move_only_function<Result<void>()> work);

  // Nobody waits for it: cleaning up. Dropped only when stop() was called before. Any thread.
  void post(std::move_only_function<void()> work);

  // The same in pieces: a step that gives true is done again behind what waits by then, so
  // that a long piece of work delays the others by one step only.
  void post_in_steps(std::move_only_function<bool()> step);

  // Io thread, about once a second: answers those who wait for a disk that is stuck.
  void answer_stalled_calls();
  bool is_stalled() const;
  std::size_t waiting() const;  // calls and clean-ups

  // Blocks until all that was asked is done; may be called again.
  void stop();

 private:
  class Works;

  const IoExecutor executor_;
  std::unique_ptr<Works> works_;
};

// What an error of a call means: false: nothing of it was done, so nothing is to be undone.
inline bool was_begun(const Failure& failure) { return failure.cause != Cause::not_begun; }

}  // namespace clawdforge
