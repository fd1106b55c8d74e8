#include "storage/disk/disk.h"

#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/intrusive/list.hpp>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "base/mailbox.h"
#include "base/refusals.h"

namespace clawdforge {
namespace asio = boost::asio;

namespace {

using Work = std::move_only_function<Result<void>()>;
using Step = std::move_only_function<bool()>;  // true: there is more to do

// One call on its way: made on the io thread, done on the disk's, answered on the first.
class Call : public boost::intrusive::list_base_hook<
                 boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  using Handler = std::move_only_function<void(Result<void>)>;

  Call(IoExecutor executor, Work work, Handler handler)
      : guard_(executor), work_(std::move(work)), handler_(std::move(handler)) {}

  // The disk's thread takes it in hand, or the io thread withdraws it; whoever is first.
  bool take() { return !is_decided_.exchange(true); }

  Result<void> attempt() {
    Work work = std::exchange(work_, {});  // and with it all that it holds on to
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::exception& thrown) {
      return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                  thrown.what());
    }
  }

  // Io thread. The first time counts: whoever waits goes on soon.
  void answer(Result<void> result) {
    if (!handler_) return;
    unlink();
    asio::post(guard_.get_executor(),
               [handler = std::exchange(handler_, {}), result = std::move(result)]() mutable {
                 handler(std::move(result));
               });
  }
  void unlink() {
    if (is_linked()) list_base_hook::unlink();
  }

 private:
  std::atomic<bool> is_decided_ = false;
  asio::executor_work_guard<IoExecutor> guard_;  // the io_context must not run dry meanwhile
  Work work_;
  Handler handler_;
};

std::unexpected<Failure> busy() {
  auto refused =
      fail_for_now(Errc::unavailable, "disk_busy",
                   "The gateway's disk is too slow for all that is asked; try again shortly.",
                   std::chrono::seconds(1));
  refused.error().cause = Cause::not_begun;
  return refused;
}

}  // namespace

class Disk::Works {
 public:
  using CallPtr = std::shared_ptr<Call>;

  explicit Works(IoExecutor executor)
      : executor_(executor),
        mailbox_(std::numeric_limits<std::size_t>::max()),
        thread_([this] { run(); }) {}
  ~Works() { stop(); }
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;

  void begin(CallPtr call);
  [[nodiscard]] bool put(Step&& step) {
    steps_.fetch_add(1, std::memory_order_relaxed);
    if (mailbox_.put(std::move(step))) return true;
    steps_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void answer_stalled_calls();

  bool is_stalled() const { return is_stalled_; }
  std::size_t waiting() const { return steps_.load(std::memory_order_relaxed); }

  void stop() {
    mailbox_.close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  using CallList = boost::intrusive::list<Call, boost::intrusive::constant_time_size<false>>;

  bool is_stuck() const {
    const auto since = busy_since_.load();
    return since.count() != 0 &&
           std::chrono::steady_clock::now().time_since_epoch() - since > kDiskStallMax;
  }
  bool attempt(const CallPtr& call);
  void run();

  const IoExecutor executor_;
  CallList unanswered_;      // io thread
  bool is_stalled_ = false;  // io thread
  std::atomic<std::size_t> calls_ = 0;
  std::atomic<std::size_t> steps_ = 0;
  std::atomic<std::chrono::steady_clock::duration> busy_since_{};  // zero: nothing is being done
  Mailbox<Step> mailbox_;
  std::thread thread_;  // last: it uses all above
};

void Disk::Works::begin(CallPtr call) {
  if (is_stalled_ && is_stuck()) return call->answer(busy());
  if (calls_.fetch_add(1, std::memory_order_relaxed) < kDiskJobsMax) {
    unanswered_.push_back(*call);
    if (put([this, call] { return attempt(call); })) return;
  }
  calls_.fetch_sub(1, std::memory_order_relaxed);
  call->answer(busy());
}

// The disk's thread.
bool Disk::Works::attempt(const CallPtr& call) {
  if (call->take()) {
    auto result = call->attempt();
    asio::post(executor_,
               [call, result = std::move(result)]() mutable { call->answer(std::move(result)); });
  }
  calls_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void Disk::Works::answer_stalled_calls() {
  is_stalled_ = is_stuck();
  if (!is_stalled_) return;
  for (auto next = unanswered_.begin(); next != unanswered_.end();) {
    Call& call = *next++;  // its answer takes it out of the list
    call.answer(call.take() ? busy() : disk_stalled());
  }
}

void Disk::Works::run() {
  for (;;) {
    std::vector<Step> steps = mailbox_.take_all();
    if (steps.empty()) return;
    for (Step& step : steps) {
      busy_since_ = std::chrono::steady_clock::now().time_since_epoch();
      // A closed mailbox takes nothing: then it is done to its end here.
      // NOLINTNEXTLINE(bugprone-use-after-move): what the mailbox refuses stays here
      while (step()) {
        if (put(std::move(step))) break;
      }
      step = {};  // what it holds on to may be a file to close
      busy_since_ = std::chrono::steady_clock::duration::zero();
      steps_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

Disk::Disk(IoExecutor executor) : executor_(executor), works_(std::make_unique<Works>(executor)) {}

Disk::~Disk() = default;

Async<void> Disk::call(Work work) {
  using Token = asio::use_awaitable_t<IoExecutor>;
  Token token;
  return asio::async_initiate<Token, void(Result<void>)>(
      [this](auto handler, Work to_do) {
        works_->begin(std::make_shared<Call>(executor_, std::move(to_do), std::move(handler)));
      },
      token, std::move(work));
}

void Disk::post(std::move_only_function<void()> work) {
  post_in_steps([work = std::move(work)]() mutable {
    work();
    return false;
  });
}

void Disk::post_in_steps(Step step) { static_cast<void>(works_->put(std::move(step))); }

void Disk::answer_stalled_calls() { works_->answer_stalled_calls(); }
bool Disk::is_stalled() const { return works_->is_stalled(); }
std::size_t Disk::waiting() const { return works_->waiting(); }

void Disk::stop() { works_->stop(); }

}  // namespace clawdforge
