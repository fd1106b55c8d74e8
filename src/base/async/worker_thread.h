// WorkerThread is a thread that works on what the io thread puts into its queue, and that can be
// seen to be stuck. What it does with its jobs is the owner's affair: Worker does one after
// another, the ledger's worker commits them in groups.
//
// Its FairQueue decides about order: jobs of one lane in order of arrival, and lanes in turns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/async/fair_queue.h"

namespace clawdforge {

template <class Job>
class WorkerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Jobs = std::vector<Job>;

  struct Body {
    std::move_only_function<void(Jobs)> work;  // at least one job
    std::move_only_function<void()> end;       // once, after the last job; may be empty
  };

  // `body` is called on the thread, which begins at once. It calls begin_step() before each thing
  // that may take up to `stall_max`.
  WorkerThread(FairQueueLimits limits, Clock::duration stall_max, Body body)
      : stall_max_(stall_max), body_(std::move(body)), queue_(limits), thread_([this] { run(); }) {}
  ~WorkerThread() { stop(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Any thread. False: the queue or the lane is full, or stop() was called; the job is left with
  // the caller.
  [[nodiscard]] bool put(const Lane& lane, Job&& job) { return queue_.put(lane, std::move(job)); }
  // The same without a limit.
  [[nodiscard]] bool put_always(const Lane& lane, Job&& job) {
    return queue_.put_always(lane, std::move(job));
  }
  std::size_t queued() const { return queue_.size(); }

  // The thread itself.
  void begin_step() { busy_since_ = Clock::now().time_since_epoch(); }

  // Any thread: the present step takes longer than it may.
  bool is_stuck() const {
    const Clock::duration since = busy_since_.load();
    return since != Clock::duration::zero() && Clock::now().time_since_epoch() - since > stall_max_;
  }

  // Takes no more jobs and waits until those that are queued are done. May be called again.
  void stop() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    for (;;) {
      Jobs jobs = queue_.take();
      if (jobs.empty()) break;
      body_.work(std::move(jobs));
      busy_since_ = Clock::duration::zero();
    }
    if (body_.end) body_.end();
  }

  const Clock::duration stall_max_;
  std::atomic<Clock::duration> busy_since_{};  // zero: it waits for jobs
  Body body_;
  FairQueue<Job> queue_;
  std::thread thread_;  // last: it uses all above
};

}  // namespace clawdforge
