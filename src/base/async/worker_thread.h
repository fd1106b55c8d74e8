// WorkerThread is a thread that works on what the io thread puts into its queue, and that can be
// seen to be stuck. What it does with its jobs is the owner's affair: Worker does one after
// another, the ledger's worker commits them in groups.
//
// The queue decides about order and fairness: take_all() gives the jobs to do next, and waits for
// them. A Mailbox gives all that there are, in order of arrival.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/async/mailbox.h"

namespace clawdforge {

template <class Job, class Queue = Mailbox<Job>>
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
  WorkerThread(std::size_t jobs_max, Clock::duration stall_max, Body body)
      : stall_max_(stall_max),
        body_(std::move(body)),
        queue_(jobs_max),
        thread_([this] { run(); }) {}
  ~WorkerThread() { stop(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Any thread. False: the queue is full or closed, and the job is left with the caller.
  [[nodiscard]] bool put(Job&& job) { return queue_.put(std::move(job)); }
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
      Jobs jobs = queue_.take_all();
      if (jobs.empty()) break;
      body_.work(std::move(jobs));
      busy_since_ = Clock::duration::zero();
    }
    if (body_.end) body_.end();
  }

  const Clock::duration stall_max_;
  std::atomic<Clock::duration> busy_since_{};  // zero: it waits for jobs
  Body body_;
  Queue queue_;
  std::thread thread_;  // last: it uses all above
};

}  // namespace clawdforge
