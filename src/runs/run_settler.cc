#include "runs/run_settler.h"

#include <chrono>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUnsettledMax = 1'000;  // runs; those over it wait for the next start
constexpr std::chrono::seconds kSettlePause{1};

}  // namespace

RunSettler::RunSettler(IoExecutor executor, RunRows& rows, Metrics& metrics)
    : executor_(executor), rows_(rows), metrics_(metrics), tasks_(executor) {}

Async<void> RunSettler::settle(RunEnd end) {
  metrics_
      .counter("clawdforge_runs_total", "Runs that were asked of an agent, by how they ended.",
               {{"state", end.state}})
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

Task<void> RunSettler::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
}

}  // namespace clawdforge
