// Worker does what would hold up the io thread, on a thread of its own: the work of one lane in
// order of arrival, and the lanes in turns. The io thread asks and awaits the answer. stop() or the
// destructor finishes what is queued, and must come before the end of the io_context.
//
// A worker that is at the same step for too long is stuck, for example in a disk that does not
// answer. Then new calls are refused at once, and answer_stalled_calls() answers those that wait.
#pragma once

#include <cassert>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/async/async.h"
#include "base/async/lane.h"

namespace clawdforge {

class Worker {
 public:
  struct Options {
    // How many calls may wait, of all apps and of one. What is posted does not count, and is never
    // refused.
    std::size_t calls_max;
    std::size_t lane_calls_max;
    std::chrono::milliseconds stall_max;  // for one call, or one step of what is posted
    // The answer to a call that was not begun and never will be: too many wait, the worker is
    // stuck, or stop() came first.
    std::unexpected<Failure> (*busy)();
    // The answer to a call that the worker got stuck in: it may still be done, before anything
    // that is asked or posted from then on.
    std::unexpected<Failure> (*stalled)();
  };

  Worker(IoExecutor executor, Options options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Does `work`, which gives a Result<T>, on the worker's thread. It owns all it needs, because
  // the caller may be gone by then. Cannot be cancelled. An exception becomes a failure.
  template <class Work>
  auto call(Lane lane, Work work) -> Task<std::invoke_result_t<Work&>> {
    if constexpr (std::is_void_v<typename std::invoke_result_t<Work&>::value_type>) {
      return call_for_nothing(std::move(lane), std::move(work));
    } else {
      return call_for_value(std::move(lane), std::move(work));
    }
  }

  // No caller waits for it: cleaning up. Dropped only when stop() was called before. Any thread.
  void post(Lane lane, std::move_only_function<void()> work);

  // The same in steps: one that gives true is done again after what its lane has queued by then, so
  // that a long piece of work delays the others by one step only. After stop() no step is done
  // again: the work must be such that the next start of the program goes on with it.
  void post_in_steps(Lane lane, std::move_only_function<bool()> step);

  // Io thread, about once a second.
  void answer_stalled_calls();
  bool is_stalled() const;
  std::size_t waiting() const;  // calls and what is posted, the present one included

  // Blocks until all that is queued is done; may be called again.
  void stop();

 private:
  class Thread;

  Async<void> call_for_nothing(Lane lane, std::move_only_function<Result<void>()> work);

  template <class Work, class Value = std::invoke_result_t<Work&>>
  Task<Value> call_for_value(Lane lane, Work work) {
    // Shared: a call that is answered because the worker is stuck may still be done afterwards.
    auto result = std::make_shared<std::optional<Value>>();
    auto done =
        co_await call_for_nothing(std::move(lane), [work = std::move(work), result]() mutable {
          *result = work();
          return Result<void>();
        });
    if (!done) co_return std::unexpected(std::move(done.error()));
    std::optional<Value>& value = *result;
    assert(value);  // the call was done, so the work has given its value
    co_return std::move(*value);
  }

  const IoExecutor executor_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace clawdforge
