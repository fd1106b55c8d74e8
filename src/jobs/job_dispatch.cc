// How jobs are begun and brought to their end.
#include <algorithm>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "base/refusals.h"
#include "jobs/jobs.h"
#include "jobs/live_job.h"
#include "quota/apps.h"
#include "storage/work/answer_files.h"

namespace clawdforge {
namespace {

constexpr std::chrono::milliseconds kDispatchPause{1'000};  // when the ledger could not be asked
constexpr std::chrono::milliseconds kQuietMax{60'000};      // the clock may have been set

}  // namespace

Task<void> Jobs::dispatch() {
  while (!is_draining_) {
    const TimePoint now = deps_.clock.now();
    const auto app = queue_.next_app(now);
    if (!app) {
      const auto next = queue_.next_time();
      const auto quiet =
          next ? std::clamp(*next - now, std::chrono::milliseconds(1), kQuietMax) : kQuietMax;
      co_await wake_.wait_for(quiet);
      continue;
    }
    auto waiting = co_await deps_.rows.waiting(*app, now, queue_.has_run_at_door(*app),
                                               kJobsInHandMaxPerApp + 1);
    if (is_draining_) break;
    if (!waiting) {
      queue_.note_ready(*app, now + kDispatchPause);
      continue;
    }
    const auto first = std::ranges::find_if(
        waiting->ready, [this](const Job& job) { return !queue_.is_in_hand(job.id); });
    if (first != waiting->ready.end()) {
      queue_.take(*first);
      queue_.note_ready(*app, now);  // there may be more
      auto live = std::make_shared<LiveJob>(std::move(*first));
      live_.emplace(live->job.id, live);
      tasks_.spawn(carry(std::move(live)));
    } else if (const auto next = waiting->next_ready_at) {
      queue_.note_ready(*app, *next);
    } else {
      queue_.forget_idle(*app);
    }
  }
}

Task<void> Jobs::carry(std::shared_ptr<LiveJob> live) {
  JobAnswer answer = co_await attempt(live);
  co_await follow(live, std::move(answer));
  live_.erase(live->job.id);
  queue_.put_back(live->job);
  if (live->has_begun) queue_.resume(live->job.app);
  note_ready(live->job.app, deps_.clock.now());
  tell(live->job.id);
}

Task<JobAnswer> Jobs::attempt(std::shared_ptr<LiveJob> live) {
  const Job& job = live->job;
  const auto app = deps_.apps.named(job.app);
  if (!app) {
    const auto cancelled = co_await deps_.rows.cancel_all(job.app, deps_.clock.now());
    if (cancelled) note_end(job.app, JobState::cancelled);
    co_return JobAnswer{.status = 401, .code = "token_revoked"};
  }
  auto read = co_await deps_.rows.body_of(job.id, Lane(job.app));
  if (!read) co_return JobAnswer{.status = 503, .code = "ledger_unavailable"};
  std::optional<std::string> body = std::move(*read);
  if (!body) co_return JobAnswer{.status = 410, .code = "cancelled"};
  ByteHold memory = deps_.memory.open(job.app.str());
  if (memory.resize(body->size()) != Fit::fits) {
    co_return JobAnswer{.status = 503, .code = "memory_budget"};
  }
  co_return co_await work_({.job = job,
                            .app = app,
                            .body = std::move(*body),
                            .hang_up = &live->hang_up,
                            .gate = std::make_shared<Gate>(*this, live)});
}

Async<void> Jobs::begin(std::shared_ptr<LiveJob> live, AskPlace place) {
  if (is_draining_) co_return job_interrupted();
  live->job.turn_index = place.turn_index;
  live->job.after_event = place.after_event;
  live->is_beginning = true;
  const auto is_begun = co_await deps_.rows.begin(live->job, deps_.clock.now());
  live->is_beginning = false;
  if (!is_begun) co_return std::unexpected(is_begun.error());
  if (!*is_begun) co_return job_cancelled();
  live->has_begun = true;
  ++live->job.attempts;
  looks_.erase(live->job.app);
  queue_.begun(live->job);
  note_ready(live->job.app, deps_.clock.now());
  tell(live->job.id);
  co_return Result<void>{};
}

// What is not written yet is tried again: else the row would say for ever that the job runs. At
// the end of the gateway the next start finds it.
Async<void> Jobs::try_until_written(std::function<Async<void>()> write) {
  Timer pause(deps_.executor);
  while (true) {
    auto written = co_await write();
    const bool is_decided = written || written.error().kind == Errc::gone ||
                            written.error().code == job_interrupted().error().code;
    if (is_decided || is_stopping_) co_return written;
    pause.expires_after(kDispatchPause);
    co_await pause.async_wait(kAwait);
  }
}

Task<void> Jobs::follow(std::shared_ptr<LiveJob> live, JobAnswer answer) {
  const Job& job = live->job;
  if (!live->has_begun && (answer.status < 400 || answer.code == "cancelled")) {
    // Cancelled before its agent was asked; or the gateway stops, and the job stays queued.
    if (is_draining_) co_return;
    const auto cancelled = co_await deps_.rows.cancel(job.app, job.id, deps_.clock.now());
    if (cancelled && *cancelled) note_end(job.app, JobState::cancelled);
    co_return;
  }
  if (!live->has_begun && answer.code == "token_revoked") co_return;  // its row says so already
  const int looks = looks_[job.app];
  const std::int64_t attempts = job.attempts + (live->has_begun ? 0 : 1);
  const Verdict verdict =
      verdict_on(answer, live->has_begun, live->is_unwanted, attempts, job.attempts_max, looks);
  using Next = Verdict::Next;
  const TimePoint now = deps_.clock.now();
  const TimePoint later = std::chrono::ceil<std::chrono::seconds>(now + verdict.pause);
  if (verdict.next == Next::wait) {
    looks_[job.app] = looks + 1;
    queue_.pause(job.app, now + verdict.pause);
    co_return;
  }
  looks_.erase(job.app);
  if (verdict.next == Next::leave) co_return;
  if (verdict.next == Next::postpone) {
    co_await try_until_written(
        [this, &job, later] { return deps_.rows.postpone(job.id, later, Lane(job.app)); });
    co_return;
  }
  if (!live->has_begun) {
    // It failed before its agent was asked: that is an attempt, too.
    co_await try_until_written([this, live] { return begin(live, {}); });
    if (!live->has_begun) co_return;
  }
  if (verdict.next == Next::retry) {
    co_await try_until_written(
        [this, &job, later] { return deps_.rows.requeue(job.id, later, Lane(job.app)); });
    co_return;
  }
  co_await end(live, verdict.state, std::move(answer));
}

Task<void> Jobs::end(std::shared_ptr<LiveJob> live, JobState state, JobAnswer answer) {
  JobEnd ended{.id = live->job.id,
               .app = live->job.app,
               .state = state,
               .ended_at = deps_.clock.now(),
               .status = answer.status,
               .answer_bytes = static_cast<std::int64_t>(answer.body.size())};
  kept_.add_kept(ended.app, ended.answer_bytes);
  if (answer.body.size() > kAnswerInLedgerMax) {
    const auto text = std::make_shared<const std::string>(std::move(answer.body));
    const auto kept = co_await try_until_written([this, live, text] {
      return deps_.files.keep(live->job.id.str(), text, Lane(live->job.app));
    });
    if (!kept) co_return;
    ended.is_in_file = true;
  } else {
    ended.answer = std::move(answer.body);
  }
  const auto written = co_await try_until_written([this, &ended] { return deps_.rows.end(ended); });
  if (written) note_end(ended.app, state);
}

}  // namespace clawdforge
