#include "jobs/jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/async/hang_up_subscription.h"
#include "base/async/timer.h"
#include "base/refusals.h"
#include "jobs/live_job.h"
#include "quota/apps.h"
#include "storage/work/answer_files.h"

namespace clawdforge {
namespace {

constexpr std::chrono::milliseconds kLedgerPause{1'000};  // after a write or read that failed
constexpr std::int64_t kSweepJobsMax = 500;               // removed in one transaction
constexpr std::chrono::seconds kJobsFullWait{60};

constexpr std::string_view kInterruptedAnswer =
    R"({"ok":false,"code":"interrupted","detail":"The gateway ended while the job was under way."})";

}  // namespace

Jobs::Jobs(Dependencies deps, Options options)
    : deps_(deps), options_(options), kept_(kJobBytesMaxPerApp), tasks_(deps.executor) {
  // All are there from the start, so that a rate can be taken of the first one.
  accepted();
  for (const JobState state : {JobState::queued, JobState::running}) unended(state);
  for (const JobState state :
       {JobState::succeeded, JobState::failed, JobState::cancelled, JobState::interrupted}) {
    ended(state);
  }
}

Jobs::~Jobs() = default;

Async<void> Jobs::recover() {
  const TimePoint now = deps_.clock.now();
  const auto left = co_await deps_.rows.recover(
      now, kRetryPauses,
      {.state = JobState::interrupted,
       .ended_at = now,
       .status = 503,
       .answer = std::string(kInterruptedAnswer),
       .answer_bytes = static_cast<std::int64_t>(kInterruptedAnswer.size())});
  if (!left) co_return std::unexpected(left.error());
  if (left->interrupted + left->requeued > 0) {
    deps_.log.info("jobs of an earlier life",
                   {{"interrupted", left->interrupted}, {"queued_again", left->requeued}});
  }
  const auto waiting = co_await deps_.rows.waiting_apps();
  if (!waiting) co_return std::unexpected(waiting.error());
  for (const auto& [app, at] : *waiting) queue_.note_ready(app, at);
  auto removed = co_await remove_files_without_rows();
  if (!removed) co_return removed;
  co_return co_await count_stored();
}

// A file is written before its row says so: after a crash it may be there alone.
Async<void> Jobs::remove_files_without_rows() {
  auto names = co_await deps_.files.names();
  if (!names) co_return std::unexpected(std::move(names.error()));
  if (names->empty()) co_return Result<void>{};
  const auto known = co_await deps_.rows.with_files();
  if (!known) co_return std::unexpected(known.error());
  std::erase_if(*names, [&](const std::string& name) {
    return std::ranges::find(*known, JobId(name)) != known->end();
  });
  co_return co_await deps_.files.remove(std::move(*names));
}

void Jobs::start(JobWork work) {
  work_ = std::move(work);
  tasks_.spawn(dispatch());
}

Async<void> Jobs::count_stored() {
  kept_.begin_count();
  auto stored = co_await deps_.rows.bytes_by_app(kJobOverheadBytes);
  if (!stored) co_return std::unexpected(std::move(stored.error()));
  kept_.end_count(std::move(*stored));
  const auto counts = co_await deps_.rows.count_by_state();
  if (!counts) co_return std::unexpected(counts.error());
  for (const JobState state : {JobState::queued, JobState::running}) {
    const auto found = counts->find(std::string(name_of(state)));
    unended(state).set(found == counts->end() ? 0 : found->second);
  }
  co_return Result<void>{};
}

Async<Job> Jobs::submit(AppName app, JobRequest request) {
  ByteReservation space(kept_, app);
  const auto bytes = static_cast<std::int64_t>(request.body.size() + request.meta.size());
  if (!space.add(bytes + kJobOverheadBytes)) {
    auto refused =
        fail_for_now(Errc::over_quota, "too_many_jobs",
                     "The jobs of this app, ended ones included, keep as many bytes as they "
                     "may; wait until some are deleted.",
                     kJobsFullWait);
    refused.error().limit = standing_limit("bytes", space.bytes_max(), space.held_by_app());
    co_return refused;
  }
  Job job;
  job.id = JobId(deps_.ids.uuid());
  job.app = app;
  job.kind = request.kind;
  job.session_id = std::move(request.session_id);
  job.meta = std::move(request.meta);
  job.webhook = std::move(request.webhook);
  job.request_id = std::move(request.request_id);
  job.created_at = deps_.clock.now();
  job.ready_at = std::max(job.created_at, request.run_at.value_or(job.created_at));
  job.attempts_max = request.attempts_max;
  std::optional<KeyWrite> answer;
  if (request.key) answer = request.key->keep(request.answer_of(job), job.created_at);
  auto added = co_await deps_.rows.add(job, std::move(request.body), {options_.queued_max_per_app},
                                       std::move(answer));
  if (request.key) (added ? request.key->is_settled : request.key->is_undone) = true;
  if (!added) co_return std::unexpected(std::move(added.error()));
  space.keep();
  accepted().increment();
  note_ready(app, job.ready_at);
  co_return job;
}

void Jobs::note_ready(const AppName& app, TimePoint at) {
  queue_.note_ready(app, at);
  wake_.notify_all();
}

Async<JobRecord> Jobs::find(AppName app, JobId id) const {
  return deps_.rows.find(std::move(app), std::move(id));
}

Task<void> Jobs::changed(JobId id, std::chrono::milliseconds most) {
  std::weak_ptr<Signal>& known = watches_[id];
  std::shared_ptr<Signal> watch = known.lock();
  if (!watch) known = watch = std::make_shared<Signal>();
  co_await watch->wait_for(most);
  const bool is_last = watch.use_count() == 1;
  watch.reset();
  if (is_last) watches_.erase(id);
}

void Jobs::tell(const JobId& id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  if (const auto watch = found->second.lock()) watch->notify_all();
}

Async<JobRecord> Jobs::find_ended(AppName app, JobId id, std::chrono::seconds most,
                                  HangUp* hang_up) {
  const auto end = std::chrono::steady_clock::now() + most;
  bool is_gone = false;
  const HangUpSubscription subscription(hang_up, [this, id, &is_gone] {
    is_gone = true;
    tell(id);
  });
  while (true) {
    auto found = co_await find(app, id);
    const auto now = std::chrono::steady_clock::now();
    if (!found || has_ended(found->job.state) || now >= end || is_gone || is_draining_) {
      co_return found;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now);
    // What happened while the row was read is seen by the next look.
    co_await changed(id, std::min(left, kLedgerPause));
  }
}

Async<bool> Jobs::cancel(AppName app, JobId id) {
  auto is_cancelled = co_await deps_.rows.cancel(app, id, deps_.clock.now());
  if (!is_cancelled) co_return is_cancelled;
  const auto known = live_.find(id);
  if (*is_cancelled) {
    note_end(app, JobState::cancelled);
    if (known != live_.end()) known->second->hang_up.happen();
    tell(id);
    co_return true;
  }
  if (known == live_.end()) co_return false;
  known->second->is_unwanted = true;
  const std::shared_ptr<LiveJob> kept = known->second;
  kept->hang_up.happen();
  while (live_.contains(id)) co_await changed(id, kLedgerPause);
  const auto record = co_await find(std::move(app), std::move(id));
  if (!record) co_return std::unexpected(record.error());
  co_return record->job.state == JobState::cancelled;
}

void Jobs::end_app(const AppName& app) {
  for (const auto& [id, live] : live_) {
    if (live->job.app != app) continue;
    live->is_unwanted = true;
    live->hang_up.happen();
  }
}

std::size_t Jobs::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(live_, [](const auto& entry) { return entry.second->has_begun; }));
}

Async<void> Jobs::sweep() {
  while (!is_stopping_) {
    auto ids = co_await deps_.rows.ended(deps_.clock.now() - options_.ttl, kSweepJobsMax);
    if (!ids) co_return std::unexpected(std::move(ids.error()));
    if (ids->empty()) break;
    std::vector<std::string> names;
    for (const JobId& id : *ids) names.push_back(id.str());
    // The file goes first: a row that is left over is found again.
    auto removed = co_await deps_.files.remove(std::move(names));
    if (removed) removed = co_await deps_.rows.remove(std::move(*ids));
    if (!removed) co_return removed;
  }
  co_return co_await count_stored();
}

void Jobs::drain() {
  is_draining_ = true;
  for (const auto& [id, live] : live_) {
    if (!live->has_begun && !live->is_beginning) live->hang_up.happen();
  }
  for (const auto& [id, watch] : watches_) {
    if (const auto known = watch.lock()) known->notify_all();
  }
  wake_.notify_all();
}

Task<void> Jobs::stop() {
  if (!is_draining_) drain();
  is_stopping_ = true;
  wake_.notify_all();
  co_await tasks_.join();
}

void Jobs::note_end(const AppName& app, JobState state) {
  deps_.on_told(app);
  ended(state).increment();
}

Counter& Jobs::accepted() {
  return deps_.metrics.counter("clawdforge_jobs_accepted_total", "Jobs that were accepted.");
}

Gauge& Jobs::unended(JobState state) {
  return deps_.metrics.gauge("clawdforge_jobs",
                             "Jobs that have not ended, as the last sweep found them.",
                             {{"state", std::string(name_of(state))}});
}

Counter& Jobs::ended(JobState state) {
  return deps_.metrics.counter("clawdforge_jobs_ended_total", "Jobs that ended, by how.",
                               {{"state", std::string(name_of(state))}});
}

}  // namespace clawdforge
