#include "runs/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/claude/result_value.h"
#include "base/async_tokens.h"
#include "base/hang_up_subscription.h"
#include "base/refusals.h"
#include "base/signal.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kUnsettledMax = 1'000;  // runs; those over it wait for the next start
constexpr std::chrono::seconds kSettlePause{1};
constexpr std::chrono::seconds kRestartWait{5};
constexpr const char* kShuttingDown = "The gateway is shutting down.";

enum class Stop { none, caller_gone, timed_out, shutdown };

std::unexpected<Failure> never_started(Stop reason) {
  if (reason == Stop::timed_out) {
    return fail_for_now(
        Errc::unavailable, "queue_timeout",
        "The run's time ended while it waited for a place; it is safe to try again.",
        std::chrono::seconds(2));
  }
  if (reason == Stop::caller_gone) {
    return fail(Errc::gone, "cancelled", "The caller hung up before the run started.");
  }
  return fail_for_now(Errc::unavailable, "interrupted", kShuttingDown, kRestartWait);
}

Failure stopped_failure(Stop reason, const RunRequest& request) {
  switch (reason) {
    case Stop::timed_out:
      return {.kind = Errc::timed_out,
              .code = "timeout",
              .message = fmt::format("{} did not finish within {} seconds", request.agent,
                                     request.timeout.count()),
              .cause = Cause::deadline};
    case Stop::caller_gone:
      return {.kind = Errc::gone,
              .code = "cancelled",
              .message = "The caller hung up.",
              .cause = Cause::cancelled};
    case Stop::shutdown:
    case Stop::none:
      break;
  }
  return {.kind = Errc::unavailable,
          .code = "interrupted",
          .message = kShuttingDown,
          .retry_after = kRestartWait,
          .cause = Cause::interrupted};
}

RunOutcome refused(Failure failure) {
  RunOutcome outcome;
  outcome.stop_reason = "error";
  outcome.failure = std::move(failure);
  return outcome;
}

std::string_view state_of(const std::optional<Failure>& failure) {
  if (!failure) return "succeeded";
  if (failure->cause == Cause::cancelled) return "cancelled";
  if (failure->cause == Cause::interrupted) return "interrupted";
  return "failed";
}

std::string stop_reason_of(const Failure& failure) {
  if (failure.cause == Cause::deadline) return "timeout";
  if (failure.cause == Cause::cancelled) return "cancelled";
  return "error";
}

}  // namespace

// One run under way. Shared by its task and by the handler that waits for its answer.
class Runs::Live {
 public:
  Live(Runs& runs, RunRequest asked, std::shared_ptr<const App> caller, std::unique_ptr<Slot> place)
      : request(std::move(asked)),
        app(std::move(caller)),
        slot(std::move(place)),
        runs_(runs),
        entry_(runs.live_.insert(runs.live_.end(), this)),
        deadline_(runs.deps_.executor) {}
  ~Live() { runs_.live_.erase(entry_); }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // The first reason counts; once the answer is given, none does.
  void stop(Stop reason) {
    if (stop_ != Stop::none || is_answered_) return;
    stop_ = reason;
    slot->withdraw();
    if (shot) shot->stop();
  }
  Stop stopped() const { return stop_; }

  void start_deadline(const std::shared_ptr<Live>& self) {
    deadline_.expires_at(request.received + request.timeout);
    deadline_.async_wait([weak = std::weak_ptr(self)](boost::system::error_code error) {
      const auto live = weak.lock();
      if (live && !error) live->stop(Stop::timed_out);
    });
  }

  void give(Result<RunOutcome> outcome) {
    answer_ = std::move(outcome);
    is_answered_ = true;
    deadline_.cancel();
    answered_.notify_all();
  }
  Task<void> wait() {
    while (!is_answered_) co_await answered_.wait();
  }
  Result<RunOutcome> take() { return std::move(answer_); }  // once, after wait()

  RunRequest request;
  const std::shared_ptr<const App> app;
  std::vector<Attachment> attachments;
  std::unique_ptr<Slot> slot;
  std::unique_ptr<OneShot> shot;
  std::string run_id;
  bool is_trial = false;  // let through a closed breaker to try
  bool may_have_dir = false;
  steady_clock::time_point begun;

 private:
  Runs& runs_;
  std::list<Live*>::iterator entry_;
  Stop stop_ = Stop::none;
  Timer deadline_;
  Signal answered_;
  bool is_answered_ = false;
  Result<RunOutcome> answer_ = never_started(Stop::shutdown);
};

Runs::Runs(Dependencies surroundings, Options options)
    : deps_(std::move(surroundings)),
      options_(options),
      pool_(options.pool, deps_.metrics.gauge("clawdforge_runs_running", "Runs that hold a place."),
            deps_.metrics.gauge("clawdforge_runs_waiting", "Runs that wait for a place.")),
      tasks_(deps_.executor) {}

Runs::~Runs() = default;

Async<RunOutcome> Runs::execute(std::shared_ptr<const App> app, RunRequest request,
                                HangUp* hang_up) {
  if (is_stopping_) co_return never_started(Stop::shutdown);
  std::vector<Attachment> attachments;
  if (!request.files.empty()) {
    auto found = co_await deps_.uploads.find(app->name, request.files);
    if (!found) co_return std::unexpected(found.error());
    attachments = std::move(*found);
    if (is_stopping_) co_return never_started(Stop::shutdown);
  }
  if (auto refusal = breakers_[request.agent].refusal(steady_clock::now())) {
    co_return refused(std::move(*refusal));
  }
  auto slot = pool_.enter(app->name, app->runs_max ? app->runs_max : options_.runs_max_per_app);
  if (!slot) co_return std::unexpected(slot.error());
  const auto live = std::make_shared<Live>(*this, std::move(request), app, std::move(*slot));
  live->attachments = std::move(attachments);
  live->start_deadline(live);
  tasks_.spawn(work(live));

  const HangUpSubscription subscription(hang_up, [weak = std::weak_ptr(live)] {
    if (const auto run = weak.lock()) run->stop(Stop::caller_gone);
  });
  co_await live->wait();
  co_return live->take();
}

// From the queue to the end of the last process.
Task<void> Runs::work(std::shared_ptr<Live> live) {
  co_await live->slot->settled();
  AgentBreaker& breaker = breakers_[live->request.agent];
  if (live->slot->is_displaced()) {
    live->give(Pool::full());
  } else if (live->stopped() != Stop::none) {
    live->give(never_started(live->stopped()));
  } else if (auto refusal = breaker.refusal(steady_clock::now())) {
    live->give(refused(std::move(*refusal)));
  } else {
    live->is_trial = breaker.pass();
    co_await ask(live);
  }
  live->slot.reset();
}

Task<void> Runs::ask(std::shared_ptr<Live> live) {
  live->run_id = deps_.ids.uuid();
  live->begun = steady_clock::now();
  bool is_out_of_memory = false;
  try {
    co_await try_to_ask(live);
  } catch (const std::bad_alloc&) {
    is_out_of_memory = true;  // for what the agent has said, most likely
  }
  if (is_out_of_memory) {
    if (live->shot) live->shot->stop();
    OneShotAnswer nothing;
    nothing.failure = out_of_memory().error();
    co_await settle(live, std::move(nothing));
  }
  if (live->shot) {
    co_await live->shot->finish();
    live->shot.reset();
  }
  if (live->may_have_dir) deps_.run_dirs.remove(live->run_id);
}

Task<void> Runs::try_to_ask(std::shared_ptr<Live> live) {
  auto begun = co_await begin(live);
  if (begun) {
    OneShotAnswer answer = co_await live->shot->answer();
    co_await settle(live, std::move(answer));
  } else {
    if (live->is_trial) breakers_[live->request.agent].give_up();
    if (live->shot) live->shot->stop();
    live->give(std::unexpected(begun.error()));
  }
}

// The directory, the process, the row. The prompt is sent only after all three: no agent
// is asked anything that the ledger does not know of. The row is written while the
// program starts.
Async<void> Runs::begin(std::shared_ptr<Live> live) {
  auto dir = co_await deps_.run_dirs.make(live->run_id, std::move(live->attachments));
  live->may_have_dir = dir || was_begun(dir.error());
  if (!dir) co_return std::unexpected(dir.error());
  if (live->stopped() != Stop::none) co_return never_started(live->stopped());
  RunRequest& request = live->request;
  Run run{.id = live->run_id,
          .app = live->app->name,
          .agent = request.agent,
          .model = request.model,
          .prompt_bytes = static_cast<std::int64_t>(request.prompt.size()),
          .started_at = deps_.clock.now(),
          .instance_id = deps_.instance_id};
  auto shot = deps_.one_shots.start({.agent = request.agent,
                                     .prompt = std::move(request.prompt),
                                     .model = request.model,
                                     .system = std::move(request.system),
                                     .system_mode = request.system_mode,
                                     .effort = request.effort,
                                     .attachments = std::move(dir->attachments),
                                     .working_dir = std::move(dir->work),
                                     .temp_dir = std::move(dir->temp)});
  if (!shot) co_return std::unexpected(shot.error());
  live->shot = std::move(*shot);
  auto added = co_await deps_.ledger.add_run(std::move(run), live->shot->mark());
  if (!added && may_be_kept(added.error())) {
    // The row may come after all, and must not say for ever that it runs.
    settle_again({.run_id = live->run_id,
                  .state = "failed",
                  .outcome = "ledger_stalled",
                  .ended_at = deps_.clock.now(),
                  .duration_ms = 0,
                  .result_bytes = {},
                  .stop_reason = "error",
                  .exit_code = {},
                  .exit_signal = {},
                  .usage = {},
                  .cost_usd = {}});
  }
  co_return added;
}

Task<void> Runs::settle(std::shared_ptr<Live> live, OneShotAnswer answer) {
  const auto now = steady_clock::now();
  AgentBreaker& breaker = breakers_[live->request.agent];
  if (answer.failure && live->stopped() != Stop::none) {
    answer.failure = stopped_failure(live->stopped(), live->request);
    if (live->is_trial) breaker.give_up();  // it shows nothing about the agent
  } else {
    breaker.note(answer.failure, now, live->is_trial);
  }
  RunOutcome outcome{.run_id = live->run_id,
                     .failure = std::move(answer.failure),
                     .result = {},
                     .stop_reason = std::move(answer.stop_reason),
                     .usage = answer.usage,
                     .cost_usd = answer.cost_usd,
                     .error_tail = std::move(answer.error_tail),
                     .duration = std::chrono::floor<std::chrono::milliseconds>(now - live->begun)};
  if (outcome.failure) outcome.stop_reason = stop_reason_of(*outcome.failure);
  RunEnd end{.run_id = live->run_id,
             .state = std::string(state_of(outcome.failure)),
             .outcome = std::string(outcome.failure ? outcome.failure->code : "ok"),
             .ended_at = deps_.clock.now(),
             .duration_ms = outcome.duration.count(),
             .result_bytes = {},
             .stop_reason = outcome.stop_reason,
             .exit_code = answer.exit_code,
             .exit_signal = answer.exit_signal,
             .usage = answer.usage,
             .cost_usd = answer.cost_usd};
  if (!outcome.failure) {
    outcome.result = result_value(answer.text);
    end.result_bytes = static_cast<std::int64_t>(answer.text.size());
  }
  deps_.metrics
      .counter("clawdforge_runs_total", "Runs that were asked of an agent, by how they ended.",
               {{"state", end.state}})
      .increment();
  auto settled = co_await deps_.ledger.settle_run(end);
  if (settled) {
    live->give(std::move(outcome));
    co_return;
  }
  // Done means committed: the caller is told that it is not, and the row is settled later.
  live->give(std::unexpected(settled.error()));
  settle_again(std::move(end));
}

void Runs::settle_again(RunEnd end) {
  if (unsettled_ >= kUnsettledMax) return;
  ++unsettled_;
  tasks_.spawn(settle_later(std::move(end)));
}

Task<void> Runs::settle_later(RunEnd end) {
  Timer pause(deps_.executor);
  for (bool is_settled = false; !is_settled && !is_stopping_;) {
    pause.expires_after(kSettlePause);
    co_await pause.async_wait(kAwait);
    auto settled = co_await deps_.ledger.settle_run(end);
    is_settled = settled.has_value();
  }
  --unsettled_;
}

Task<void> Runs::stop() {
  is_stopping_ = true;
  for (Live* live : live_) live->stop(Stop::shutdown);
  co_await tasks_.join();
}

}  // namespace clawdforge
