#include "base/async/worker.h"

#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <new>
#include <vector>

#include "base/async/worker_job.h"
#include "base/async/worker_thread.h"
#include "base/refusals.h"

namespace clawdforge {
namespace asio = boost::asio;

namespace {

using Work = std::move_only_function<Result<void>()>;
using Step = std::move_only_function<bool()>;  // true: there is more to do

struct WorkerStep {
  Lane lane;
  Step step;
};

class WorkerCall final : public WorkerJob {
 public:
  using Handler = std::move_only_function<void(Result<void>)>;

  WorkerCall(IoExecutor executor, Work work, Handler handler)
      : WorkerJob(executor), work_(std::move(work)), handler_(std::move(handler)) {}

  // The worker's thread.
  Result<void> attempt() {
    Work work = std::exchange(work_, {});  // all that it holds on to goes here, too
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::exception& thrown) {
      return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                  thrown.what());
    }
  }

  // The io thread. Only the first answer counts; the caller goes on soon.
  void answer(Result<void> result) {
    if (!handler_) return;
    unlink();
    asio::post(executor(), [handler = std::exchange(handler_, {}),
                            result = std::move(result)]() mutable { handler(std::move(result)); });
  }

 private:
  Work work_;
  Handler handler_;
};

}  // namespace

class Worker::Thread {
 public:
  using CallPtr = std::shared_ptr<WorkerCall>;

  Thread(IoExecutor executor, Options options)
      : executor_(executor),
        options_(options),
        thread_(
            {.jobs_max = options.calls_max, .lane_jobs_max = options.lane_calls_max},
            options.stall_max,
            {.work = [this](std::vector<WorkerStep> steps) { run(std::move(steps)); }, .end = {}}) {
  }

  void begin(Lane lane, CallPtr call);
  // What is posted, and the next step of it.
  [[nodiscard]] bool put_always(WorkerStep&& step) {
    const Lane lane = step.lane;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    if (thread_.put_always(lane, std::move(step))) return true;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void answer_stalled_calls();

  bool is_stalled() const { return is_stalled_; }
  std::size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  void stop() { thread_.stop(); }

 private:
  // All three: the worker's thread.
  void attempt(const CallPtr& call);
  void run(std::vector<WorkerStep> steps);
  void run_step(WorkerStep& step);

  const IoExecutor executor_;
  const Options options_;
  WorkerJobList<WorkerCall> unanswered_;  // io thread
  bool is_stalled_ = false;               // io thread
  std::atomic<std::size_t> waiting_ = 0;
  WorkerThread<WorkerStep> thread_;  // last: it uses all above
};

void Worker::Thread::begin(Lane lane, CallPtr call) {
  if (is_stalled_ && thread_.is_stuck()) return call->answer(options_.busy());
  unanswered_.push_back(*call);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  WorkerStep step{lane, [this, call] {
                    attempt(call);
                    return false;
                  }};
  if (thread_.put(lane, std::move(step))) return;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  call->answer(options_.busy());
}

void Worker::Thread::attempt(const CallPtr& call) {
  if (call->take()) {
    auto result = call->attempt();
    asio::post(executor_,
               [call, result = std::move(result)]() mutable { call->answer(std::move(result)); });
  }
}

void Worker::Thread::answer_stalled_calls() {
  is_stalled_ = thread_.is_stuck();
  if (!is_stalled_) return;
  for (auto next = unanswered_.begin(); next != unanswered_.end();) {
    WorkerCall& call = *next++;  // its answer takes it out of the list
    call.answer(call.withdraw() ? options_.busy() : options_.stalled());
  }
}

void Worker::Thread::run(std::vector<WorkerStep> steps) {
  for (WorkerStep& step : steps) {
    run_step(step);
    step.step = {};  // what it holds on to may be a file to close
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Worker::Thread::run_step(WorkerStep& step) {
  thread_.begin_step();
  if (!step.step()) return;
  // If the queue is closed the program is about to end, and the step is dropped.
  static_cast<void>(put_always(std::move(step)));
}

Worker::Worker(IoExecutor executor, Options options)
    : executor_(executor), thread_(std::make_unique<Thread>(executor, options)) {}

Worker::~Worker() = default;

Async<void> Worker::call_for_nothing(Lane lane, Work work) {
  using Token = asio::use_awaitable_t<IoExecutor>;
  Token token;
  return asio::async_initiate<Token, void(Result<void>)>(
      [this](auto handler, Lane lane_of_it, Work to_do) {
        thread_->begin(std::move(lane_of_it), std::make_shared<WorkerCall>(
                                                  executor_, std::move(to_do), std::move(handler)));
      },
      token, std::move(lane), std::move(work));
}

void Worker::post(Lane lane, std::move_only_function<void()> work) {
  post_in_steps(std::move(lane), [work = std::move(work)]() mutable {
    work();
    return false;
  });
}

void Worker::post_in_steps(Lane lane, Step step) {
  static_cast<void>(thread_->put_always({std::move(lane), std::move(step)}));
}

void Worker::answer_stalled_calls() { thread_->answer_stalled_calls(); }
bool Worker::is_stalled() const { return thread_->is_stalled(); }
std::size_t Worker::waiting() const { return thread_->waiting(); }

void Worker::stop() { thread_->stop(); }

}  // namespace clawdforge
