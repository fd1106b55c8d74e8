#include "workspace/disk.h"

#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "base/mailbox.h"

namespace clawdforge {
namespace asio = boost::asio;

namespace {

using Work = std::move_only_function<Result<void>()>;
using Step = std::move_only_function<bool()>;  // true: there is more to do

// One call on its way: made on the io thread, done on the disk's, answered on the first.
class Call {
 public:
  using Handler = std::move_only_function<void(Result<void>)>;

  Call(IoExecutor executor, Work work, Handler handler)
      : guard_(executor), work_(std::move(work)), handler_(std::move(handler)) {}

  Result<void> attempt() {
    Work work = std::exchange(work_, {});  // and with it all that it holds on to
    try {
      return work();
    } catch (const std::exception& thrown) {
      return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                  thrown.what());
    }
  }

  // Any thread, once.
  void answer(Result<void> result) {
    asio::post(guard_.get_executor(),
               [handler = std::move(handler_), result = std::move(result)]() mutable {
                 handler(std::move(result));
               });
  }

 private:
  asio::executor_work_guard<IoExecutor> guard_;  // the io_context must not run dry meanwhile
  Work work_;
  Handler handler_;
};

std::unexpected<Error> busy() {
  auto refused = fail(Errc::unavailable, "disk_busy",
                      "The gateway's disk is too slow for all that is asked; try again shortly.");
  refused.error().retry_after = std::chrono::seconds(1);
  return refused;
}

}  // namespace

class Disk::Works {
 public:
  Works() : mailbox_(std::numeric_limits<std::size_t>::max()), thread_([this] { run(); }) {}
  ~Works() { stop(); }
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;

  [[nodiscard]] bool put(Step&& step) { return mailbox_.put(std::move(step)); }

  // A place among the calls that may wait; the disk's thread gives it back.
  bool take_place() {
    if (calls_.fetch_add(1, std::memory_order_relaxed) < kDiskJobsMax) return true;
    give_place();
    return false;
  }
  void give_place() { calls_.fetch_sub(1, std::memory_order_relaxed); }

  void stop() {
    mailbox_.close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    for (;;) {
      std::vector<Step> steps = mailbox_.take_all();
      if (steps.empty()) return;
      for (Step& step : steps) {
        // A closed mailbox takes nothing: then it is done to its end here.
        // NOLINTNEXTLINE(bugprone-use-after-move): what the mailbox refuses stays here
        while (step()) {
          if (mailbox_.put(std::move(step))) break;
        }
        step = {};  // what it holds on to may be a file to close
      }
    }
  }

  std::atomic<std::size_t> calls_ = 0;
  Mailbox<Step> mailbox_;
  std::thread thread_;  // last: it uses all above
};

Disk::Disk(IoExecutor executor) : executor_(executor), works_(std::make_unique<Works>()) {}

Disk::~Disk() = default;

Async<void> Disk::call(Work work) {
  using Token = asio::use_awaitable_t<IoExecutor>;
  Token token;
  return asio::async_initiate<Token, void(Result<void>)>(
      [this](auto handler, Work to_do) {
        auto call = std::make_shared<Call>(executor_, std::move(to_do), std::move(handler));
        if (!works_->take_place()) return call->answer(busy());
        const bool is_taken = works_->put([works = works_.get(), call] {
          auto result = call->attempt();
          works->give_place();
          call->answer(std::move(result));
          return false;
        });
        if (is_taken) return;
        works_->give_place();
        call->answer(busy());
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

void Disk::stop() { works_->stop(); }

}  // namespace clawdforge
