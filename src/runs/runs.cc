#include "runs/runs.h"

#include <cassert>
#include <utility>

#include "base/async/hang_up_subscription.h"

namespace clawdforge {
namespace {

// What a breaker refuses looks like the run that has shut it.
Result<RunOutcome> refused(Failure failure) {
  const bool is_of_agent = failure.cause == Cause::login || failure.cause == Cause::account_limit;
  if (!is_of_agent) return std::unexpected(std::move(failure));
  RunOutcome outcome;
  outcome.stop_reason = "error";
  outcome.failure = std::move(failure);
  return outcome;
}

}  // namespace

Runs::Runs(Dependencies deps)
    : executor_(deps.executor),
      quota_(deps.quota),
      uploads_(deps.uploads),
      settler_(deps.executor, deps.rows, deps.metrics),
      execution_({.rows = deps.rows,
                  .catalog = deps.catalog,
                  .starter = deps.starter,
                  .run_dirs = deps.run_dirs,
                  .settler = settler_,
                  .clock = deps.clock,
                  .ids = deps.ids,
                  .instance_id = std::move(deps.instance_id)}),
      tasks_(deps.executor) {}

Async<RunOutcome> Runs::execute(std::shared_ptr<const App> app, RunRequest request,
                                HangUp* hang_up) {
  if (is_stopping_) co_return never_started(RunStop::shutdown);
  std::vector<Attachment> attachments;
  if (!request.files.empty()) {
    auto found = co_await uploads_.find(app->name, request.files);
    if (!found) co_return std::unexpected(found.error());
    attachments = std::move(*found);
    if (is_stopping_) co_return never_started(RunStop::shutdown);
  }
  auto ticket = quota_.admit(*app, {WorkKind::run, request.agent, request.model});
  if (!ticket) co_return refused(std::move(ticket.error()));
  const auto run = std::make_shared<LiveRun>(executor_, live_, std::move(app), std::move(request),
                                             std::move(*ticket));
  run->attachments = std::move(attachments);
  run->start_deadline();
  tasks_.spawn(work(run));

  const HangUpSubscription subscription(hang_up, [weak = std::weak_ptr(run)] {
    if (const auto unwanted = weak.lock()) unwanted->stop(RunStop::caller_gone);
  });
  co_return co_await run->answer();
}

// From the queue to the end of the last process.
Task<void> Runs::work(std::shared_ptr<LiveRun> run) {
  std::optional<Ticket>& ticket = run->ticket;
  assert(ticket);
  auto ready = co_await ticket->ready();
  if (run->stopped() != RunStop::none) {
    run->set_answer(never_started(run->stopped()));
  } else if (!ready) {
    run->set_answer(refused(std::move(ready.error())));
  } else {
    co_await execution_.execute(run);
  }
  run->ticket.reset();
}

Task<void> Runs::stop() {
  is_stopping_ = true;
  for (LiveRun* run : live_) run->stop(RunStop::shutdown);
  co_await tasks_.join();
  co_await settler_.stop();
}

}  // namespace clawdforge
