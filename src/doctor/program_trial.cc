#include "doctor/program_trial.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace {

Task<void> end_late(Timer* deadline, Child* child) {
  const auto [error] = co_await deadline->async_wait(kAwait);
  if (!error) child->let_go();
}

Task<TrialOutcome> run_child(std::unique_ptr<Child> child) {
  Timer deadline(child->executor());
  deadline.expires_after(kTrialProgramMax);
  TaskGroup watching(child->executor());
  watching.spawn(end_late(&deadline, child.get()));
  child->close_input();
  TrialOutcome outcome;
  while (true) {
    const auto piece = co_await child->read(kTrialOutputBytesMax);
    if (!piece || piece->empty()) break;
    outcome.output.append(
        *piece, 0, kTrialOutputBytesMax - std::min(kTrialOutputBytesMax, outcome.output.size()));
  }
  const ExitStatus status = co_await child->exit();
  if (const auto* exited = std::get_if<Exited>(&status)) {
    outcome.has_exited = true;
    outcome.exit_code = exited->code;
  }
  child->let_go();
  co_await child->gone();
  deadline.cancel();
  co_await watching.join();
  co_return outcome;
}

}  // namespace

Result<std::unique_ptr<ProgramTrials>> ProgramTrials::make() {
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<ProgramTrials> trials(new ProgramTrials());
  Spawner::Options options;
  options.kill_grace = kTrialKillGraceMax;
  options.jail_max = JailMeans::own_root;
  auto spawner = Spawner::make(trials->io_.get_executor(), options, trials->log_);
  if (!spawner) return std::unexpected(spawner.error());
  trials->spawner_ = std::move(*spawner);
  return trials;
}

TrialOutcome ProgramTrials::run(std::vector<std::string> argv,
                                std::map<std::string, std::string> environment) {
  ChildPlan plan{std::move(argv), std::move(environment), "/"};
  auto child = spawner_->spawn(plan);
  if (!child) return {};
  TrialOutcome outcome;
  io_.restart();
  boost::asio::co_spawn(io_.get_executor(), run_child(std::move(*child)),
                        [&](std::exception_ptr thrown, TrialOutcome found) {
                          if (!thrown) outcome = std::move(found);
                          io_.stop();
                        });
  io_.run();
  return outcome;
}

}  // namespace clawdforge
