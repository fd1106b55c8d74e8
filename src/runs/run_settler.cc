#include "runs/run_settler.h"

#include <chrono>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUnsettledMax = 1'000;  // runs; those over it wait for the next start
constexpr std::chrono::seconds kSettlePause{1};
constexpr std::size_t kGoneRunsMax = 10'000;  // ids; those over it wait for the next start
constexpr std::chrono::seconds kForgetPause{1};

}  // namespace

RunSettler::RunSettler(IoExecutor executor, RunRows& rows, Metrics& metrics)
    : executor_(executor), rows_(rows), metrics_(metrics), tasks_(executor) {}

Async<void> RunSettler::settle(RunEnd end) {
  metrics_
      .counter("clawdforge_runs_total", "Runs that were asked of an agent, by how they ended.",
               {{"state", std::string(name_of(end.state))}})
      .increment();
  auto settled = co_await rows_.settle(end);
  if (!settled) settle_later(std::move(end));
  co_return settled;
}

void RunSettler::settle_later(RunEnd end) {
  if (unsettled_ >= kUnsettledMax) return;
  ++unsettled_;
  tasks_.spawn(try_until_settled(std::move(end)));
}

Task<void> RunSettler::try_until_settled(RunEnd end) {
  Timer pause(executor_);
  for (bool is_settled = false; !is_settled && !is_stopping_;) {
    pause.expires_after(kSettlePause);
    co_await pause.async_wait(kAwait);
    const auto settled = co_await rows_.settle(end);
    is_settled = settled.has_value();
  }
  --unsettled_;
}

void RunSettler::note_gone(RunId run_id) {
  if (gone_.size() >= kGoneRunsMax) return;
  gone_.push_back(std::move(run_id));
  if (!std::exchange(is_forgetting_, true)) tasks_.spawn(forget_gone());
}

Task<void> RunSettler::forget_gone() {
  if (!is_stopping_) co_await stopping_.wait_for(kForgetPause);
  is_forgetting_ = false;
  // If the ledger does not take it, the marks stay: the next start looks for these trees, does not
  // find them, and clears them.
  co_await rows_.forget_processes(std::exchange(gone_, {}));
}

Task<void> RunSettler::stop() {
  is_stopping_ = true;
  stopping_.notify_all();
  co_await tasks_.join();
}

}  // namespace clawdforge
