#include "workspaces/programs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

std::unexpected<Failure> no_more_programs() {
  return fail_for_now(Errc::unavailable, "draining", "The gateway is shutting down.",
                      std::chrono::seconds(2));
}

struct Watched {
  Child* child = nullptr;
  bool is_late = false;
};

Task<void> end_in_time(Timer* deadline, std::shared_ptr<Watched> watched) {
  const auto [error] = co_await deadline->async_wait(kAwait);
  if (error || watched->child == nullptr) co_return;
  watched->is_late = true;
  watched->child->let_go();
}

// A program that does not read all of it has not failed for that.
Task<void> feed(Child* child, std::string input) {
  if (!input.empty()) {
    const auto written = co_await child->write(std::move(input));
    if (!written) co_return;
  }
  child->close_input();
}

}  // namespace

// One of the places. Given back on every path.
class Programs::Place {
 public:
  explicit Place(Programs& all) : all_(all) { ++all_.running_; }
  ~Place() {
    --all_.running_;
    all_.freed_.notify_all();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Programs& all_;
};

Async<ProgramEnd> Programs::run(ProgramOrder order) {
  if (running_ >= kProgramsMax) {
    if (waiting_ >= kProgramsWaitingMax) {
      co_return fail_for_now(Errc::unavailable, "queue_full",
                             "Too many workspaces are being worked on; try again later.",
                             std::chrono::seconds(2));
    }
    ++waiting_;
    while (running_ >= kProgramsMax && !is_stopped_) co_await freed_.wait();
    --waiting_;
  }
  const Place place(*this);
  co_return co_await run_now(std::move(order));
}

Async<ProgramEnd> Programs::run_now(ProgramOrder order) {
  if (is_stopped_) co_return no_more_programs();
  auto spawned = spawner_.spawn(order.plan);
  if (!spawned) co_return std::unexpected(std::move(spawned.error()));
  const std::unique_ptr<Child> child = std::move(*spawned);
  if (order.serve_net) order.serve_net(*child);
  const auto watched = std::make_shared<Watched>(child.get());
  children_.insert(child.get());
  TaskGroup tasks(executor_);
  Timer deadline(executor_);
  deadline.expires_after(order.time_max);
  tasks.spawn(end_in_time(&deadline, watched));
  tasks.spawn(feed(child.get(), std::move(order.input)));

  ProgramEnd end;
  for (;;) {
    const auto piece = co_await child->read(kPieceBytes);
    if (!piece || piece->empty()) break;
    const std::size_t room = order.output_bytes_max - end.output.size();
    end.output.append(*piece, 0, room);
    if (piece->size() <= room) continue;
    end.is_cut = true;
    if (!order.ends_when_cut) continue;
    child->let_go();
    break;
  }
  end.status = co_await child->exit();
  end.error_tail = std::string(child->error_tail());
  child->let_go();
  co_await child->gone();
  end.is_late = watched->is_late;
  watched->child = nullptr;
  deadline.cancel();
  co_await tasks.join();
  children_.erase(child.get());
  if (is_stopped_) co_return no_more_programs();
  co_return end;
}

void Programs::stop() {
  is_stopped_ = true;
  for (Child* const child : children_) child->let_go();
  freed_.notify_all();
}

}  // namespace clawdforge
