// The rows of jobs. What every call promises, and which errors each may give: ledger/ledger.h.
// A job's end is written once: a row that has ended stays as it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "ledger/core/ledger_records.h"
#include "model/ask_key.h"
#include "model/jobs/job.h"

namespace clawdforge {

class LedgerWorker;

struct JobFilter {
  AuditFilter audit;  // times are those of acceptance; without an app: of all apps
  std::optional<JobState> state;
};

struct JobPage {
  std::vector<Job> jobs;  // newest first
  std::optional<std::string> next_cursor;
};

// A job with what it has to show. Its answer is empty where there is none, and where it is in a
// file.
struct JobRecord {
  Job job;
  std::string answer{};
  std::int64_t answer_bytes = 0;
  bool is_in_file = false;
};

struct JobLimits {
  std::int64_t queued_max_per_app = 0;
};

// What an app has waiting: the jobs that may start now, the first ones first, without those that
// come after another one in their session; and when the next of the others may.
struct WaitingJobs {
  std::vector<Job> ready;
  std::optional<TimePoint> next_ready_at;
};

struct LeftJobs {
  std::int64_t interrupted = 0;
  std::int64_t requeued = 0;
};

class JobRows {
 public:
  JobRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  // To add the same one again changes nothing. Errc::over_quota "too_many_jobs".
  // The answer for its idempotency key is kept with it.
  Async<void> add(Job job, std::string body, JobLimits limits, std::optional<KeyWrite> key = {});

  // One of the app's own. Errc::not_found "job_not_found".
  Async<JobRecord> find(AppName app, JobId id) const;
  // Errc::invalid "validation_failed" for a cursor that no page has given.
  Async<JobPage> page(JobFilter filter, Lane lane = {}) const;
  Async<std::map<std::string, std::int64_t>> count_by_state() const;
  Async<std::map<AppName, std::int64_t>> bytes_by_app(std::int64_t bytes_each) const;

  // Apps that have queued jobs, and when the first of each may start.
  Async<std::map<AppName, TimePoint>> waiting_apps() const;
  Async<WaitingJobs> waiting(AppName app, TimePoint now, bool leaves_out_runs,
                             std::int64_t limit) const;
  // What the app has sent. None: the job is not queued any more.
  Async<std::optional<std::string>> body_of(JobId id, Lane lane) const;

  // An attempt begins. False: it must not, the job is not queued any more.
  Async<bool> begin(Job job, TimePoint at);
  // A running job is to be tried again, not before `ready_at`.
  Async<void> requeue(JobId id, TimePoint ready_at, Lane lane);
  // A queued job may not start before `ready_at`.
  Async<void> postpone(JobId id, TimePoint ready_at, Lane lane);
  Async<void> end(JobEnd end);
  // Ends a queued job. False: it is not queued. Errc::not_found "job_not_found".
  Async<bool> cancel(AppName app, JobId id, TimePoint at);
  // All that an app has queued.
  Async<std::int64_t> cancel_all(AppName app, TimePoint at);

  // Those that ended at or before `last`, the oldest first: to be removed, with their files.
  Async<std::vector<JobId>> ended(TimePoint last, std::int64_t limit) const;
  Async<void> remove(std::vector<JobId> ids);
  // Of all jobs whose answers are in files.
  Async<std::vector<JobId>> with_files() const;

  // At start, of lives that have ended: jobs that were running are queued again where they have
  // attempts left, after the pause that belongs to their number, and are interrupted otherwise,
  // with this answer.
  Async<LeftJobs> recover(TimePoint at, std::span<const std::chrono::seconds> pauses,
                          JobEnd interrupted);

 private:
  LedgerWorker& worker_;
  const InstanceId self_;
};

}  // namespace clawdforge
