#include "agent/core/program_probe.h"

#include <algorithm>
#include <utility>

#include "agent/failure/masking.h"
#include "base/async/async_tokens.h"
#include "base/async/task_group.h"

namespace clawdforge {

ProgramProbe::ProgramProbe(IoExecutor executor, Spawner& spawner, std::string program,
                           std::map<std::string, std::string> environment, std::string working_dir,
                           Jail jail)
    : executor_(executor),
      timer_(executor),
      deadline_(executor),
      spawner_(spawner),
      program_(std::move(program)),
      environment_(std::move(environment)),
      working_dir_(std::move(working_dir)),
      jail_(std::move(jail)) {}

Task<void> ProgramProbe::end_in_time() {
  const auto [error] = co_await deadline_.async_wait(kAwait);
  if (!error && child_ != nullptr) child_->let_go();
}

// All of the output is read, so that the program is not stopped by a full pipe; a little
// of it is kept.
Task<std::string> ProgramProbe::first_line() {
  constexpr std::size_t kKept = 4 * kVersionCharactersMax;
  std::string output;
  while (true) {
    const auto piece = co_await child_->read(kKept);
    if (!piece || piece->empty()) break;
    output.append(*piece, 0, kKept - std::min(kKept, output.size()));
  }
  output.resize(std::min(output.find('\n'), output.size()));
  co_return masked_line(output, kVersionCharactersMax);
}

Task<ProgramProbe::Trial> ProgramProbe::try_program(ChildPlan plan) {
  auto spawned = spawner_.spawn(plan);
  if (!spawned) co_return Trial{};
  const std::unique_ptr<Child> child = std::move(*spawned);
  child_ = child.get();
  child->close_input();
  TaskGroup watching(executor_);
  deadline_.expires_after(kProbeTimeMax);
  watching.spawn(end_in_time());

  Trial trial;
  trial.has_run = true;
  trial.version = co_await first_line();
  const ExitStatus status = co_await child->exit();
  trial.is_good = status == ExitStatus(Exited{0});
  trial.said = masked_line(child->error_tail(), kVersionCharactersMax);

  child->let_go();
  co_await child->gone();
  deadline_.cancel();
  co_await watching.join();
  child_ = nullptr;
  co_return trial;
}

Task<void> ProgramProbe::look() {
  ChildPlan plan{{program_, "--version"}, environment_, working_dir_};
  if (jail_.plan) plan.jail = jail_.plan();
  const bool is_jailed = plan.jail.has_value();
  if (is_jailed) plan.working_dir = "/";
  Trial trial = co_await try_program(std::move(plan));
  if (!trial.has_run) co_return;
  if (!is_stopped_) finding_ = {trial.is_good, trial.is_good ? std::move(trial.version) : ""};
  has_looked_ = true;
  if (trial.is_good) is_jail_failure_told_ = false;
  if (!is_jailed || trial.is_good || is_jail_failure_told_ || is_stopped_) co_return;
  const Trial outside = co_await try_program({{program_, "--version"}, environment_, working_dir_});
  if (!outside.is_good || is_stopped_) co_return;
  is_jail_failure_told_ = true;
  jail_.on_failure(trial.said);
}

Task<void> ProgramProbe::run() {
  while (!is_stopped_) {
    co_await look();
    if (is_stopped_) break;
    timer_.expires_after(finding_.is_present ? kProbeInterval : kProbeAbsentInterval);
    co_await timer_.async_wait(kAwait);
  }
}

void ProgramProbe::stop() {
  is_stopped_ = true;
  timer_.cancel();
  if (child_ != nullptr) child_->let_go();
}

}  // namespace clawdforge
