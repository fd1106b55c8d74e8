#include "ledger/jobs/job_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/refusals.h"
#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/hooks/delivery_write.h"
#include "ledger/jobs/job_row.h"
#include "ledger/keys/key_write.h"
#include "ledger/rows/instance_rows.h"
#include "model/hooks/event_body.h"
#include "model/jobs/job_json.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kTooManyJobsWait{5};

constexpr std::string_view kCountQueued =
    "SELECT COUNT(*) FROM jobs WHERE app_name = $1 AND state = 'queued'";
constexpr std::string_view kAddJob =
    "INSERT INTO jobs (job_id, app_name, kind, state, session_id, meta, webhook, request_id, "
    "created_at, ready_at, attempts_max, body_bytes, body) "
    "VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, $9, $10, $11, $12) "
    "ON CONFLICT (job_id) DO NOTHING";
constexpr std::string_view kBodyOfJob =
    "SELECT body FROM jobs WHERE job_id = $1 AND state = 'queued'";
constexpr std::string_view kBeginJob =
    "UPDATE jobs SET state = 'running', attempts = attempts + 1, "
    "started_at = COALESCE(started_at, $2), instance_id = $3, turn_index = $4, after_event = $5 "
    "WHERE job_id = $1 AND state = 'queued'";
constexpr std::string_view kRequeueJob =
    "UPDATE jobs SET state = 'queued', ready_at = $2, instance_id = NULL "
    "WHERE job_id = $1 AND state = 'running'";
constexpr std::string_view kPostponeJob =
    "UPDATE jobs SET ready_at = $2 WHERE job_id = $1 AND state = 'queued'";
constexpr std::string_view kEndJob =
    "UPDATE jobs SET state = $2, ended_at = $3, status = $4, answer = $5, answer_bytes = $6, "
    "is_in_file = $7, body = NULL, body_bytes = 0 WHERE job_id = $1 AND ended_at IS NULL "
    "RETURNING {}";
constexpr std::string_view kCancelJob =
    "UPDATE jobs SET state = 'cancelled', ended_at = $2, body = NULL, body_bytes = 0 "
    "WHERE job_id = $1 AND state = 'queued' RETURNING {}";
constexpr std::string_view kCancelJobsOfApp =
    "UPDATE jobs SET state = 'cancelled', ended_at = $2, body = NULL, body_bytes = 0 "
    "WHERE app_name = $1 AND state = 'queued'";
constexpr std::string_view kHasJob = "SELECT 1 FROM jobs WHERE job_id = $1 AND app_name = $2";
constexpr std::string_view kEndedJobs =
    "SELECT job_id FROM jobs WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2";
constexpr std::string_view kRemoveJob =
    "DELETE FROM jobs WHERE job_id = $1 AND ended_at IS NOT NULL";
constexpr std::string_view kJobsWithFiles = "SELECT job_id FROM jobs WHERE is_in_file = 1";
constexpr std::string_view kNextReady =
    "SELECT MIN(ready_at) FROM jobs WHERE app_name = $1 AND state = 'queued' AND ready_at > $2";
constexpr std::string_view kLeftRunning =
    "SELECT job_id, attempts, attempts_max FROM jobs WHERE state = 'running' "
    "AND (instance_id IS NULL OR instance_id <> $1) AND {}";

// The first of each session, and each run. A job that waits for a time does not hold up those that
// come after it in its session.
constexpr std::string_view kWaitingJobs =
    "SELECT {} FROM jobs WHERE app_name = $1 AND state = 'queued' AND ready_at <= $2 "
    "AND (session_id IS NOT NULL OR $3 = 0) AND (session_id IS NULL OR NOT EXISTS ("
    "SELECT 1 FROM jobs AS earlier WHERE earlier.session_id = jobs.session_id "
    "AND earlier.ended_at IS NULL AND earlier.job_id < jobs.job_id "
    "AND (earlier.state = 'running' OR earlier.ready_at <= $2))) ORDER BY job_id LIMIT $4";

std::unexpected<Failure> no_such_job() {
  return fail(Errc::not_found, "job_not_found", "There is no such job.");
}

Result<bool> is_one_changed(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  return result->changed > 0;
}

// What the app has queued if that is as much as it may have, and the job is not added; else none.
using QueueFull = std::optional<std::int64_t>;

Result<QueueFull> insert_job(SqlDriver& driver, const Job& job, const SharedText& body,
                             const JobLimits& limits) {
  const auto queued = driver.execute(kCountQueued, {job.app.str()});
  if (!queued) return std::unexpected(queued.error());
  const std::int64_t count = whole_in(queued->rows.at(0).at(0)).value_or(0);
  if (count >= limits.queued_max_per_app) return count;
  const auto added = driver.execute(
      kAddJob, {job.id.str(), job.app.str(), std::string(name_of(job.kind)),
                text_or_null(job.session_id.str()), job.meta, text_or_null(job.webhook),
                job.request_id, unix_seconds(job.created_at), unix_seconds(job.ready_at),
                job.attempts_max, static_cast<std::int64_t>(body->size()), body});
  if (!added) return std::unexpected(added.error());
  return QueueFull();
}

Result<std::optional<JobRecord>> select_job(SqlDriver& driver, const AppName& app,
                                            const JobId& id) {
  static const std::string kFindJob = fmt::format(
      "SELECT {}, answer_bytes, is_in_file, answer FROM jobs WHERE job_id = $1 AND app_name = $2",
      kJobColumns);
  const auto found = driver.execute(kFindJob, {id.str(), app.str()});
  if (!found) return std::unexpected(found.error());
  if (found->rows.empty()) return std::nullopt;
  const SqlRow& row = found->rows.front();
  JobRecord record{.job = job_from(row)};
  record.answer_bytes = whole_in(row.at(kJobColumnCount)).value_or(0);
  record.is_in_file = whole_in(row.at(kJobColumnCount + 1)).value_or(0) != 0;
  record.answer = text_in(row.at(kJobColumnCount + 2)).value_or("");
  return record;
}

Result<WaitingJobs> select_waiting(SqlDriver& driver, const AppName& app, std::int64_t now,
                                   bool leaves_out_runs, std::int64_t limit) {
  static const std::string kWaiting = fmt::format(fmt::runtime(kWaitingJobs), kJobColumns);
  const auto found =
      driver.execute(kWaiting, {app.str(), now, std::int64_t{leaves_out_runs ? 1 : 0}, limit});
  if (!found) return std::unexpected(found.error());
  WaitingJobs waiting;
  for (const SqlRow& row : found->rows) waiting.ready.push_back(job_from(row));
  const auto next = driver.execute(kNextReady, {app.str(), now});
  if (!next) return std::unexpected(next.error());
  waiting.next_ready_at = time_in(next->rows.at(0).at(0));
  return waiting;
}

// Its webhook is told in the same transaction. False: no row has ended by the statement.
Result<bool> tell_end(SqlDriver& driver, const Result<SqlResult>& ended, std::string_view answer) {
  if (!ended) return std::unexpected(ended.error());
  if (ended->rows.empty()) return false;
  const Job job = job_from(ended->rows.front());
  if (job.webhook.empty()) return true;
  const std::string type = fmt::format("job.{}", name_of(job.state));
  const TimePoint at = job.ended_at.value_or(TimePoint());
  const bool is_small = answer.size() <= kEventAnswerBytesMax;
  auto added = add_delivery(
      driver, {.id = DeliveryId(job.id.str()),
               .app = job.app,
               .url = job.webhook,
               .type = type,
               .body = event_body(type, at, job_json(job, is_small ? answer : std::string_view())),
               .at = at});
  if (!added) return std::unexpected(std::move(added.error()));
  return true;
}

Result<void> end_job(SqlDriver& driver, const JobEnd& end) {
  static const std::string kEnd = fmt::format(fmt::runtime(kEndJob), kJobColumns);
  auto told = tell_end(driver,
                       driver.execute(kEnd, {end.id.str(), std::string(name_of(end.state)),
                                             unix_seconds(end.ended_at), sql_value(end.status),
                                             text_or_null(end.answer), end.answer_bytes,
                                             std::int64_t{end.is_in_file ? 1 : 0}}),
                       end.answer);
  if (!told) return std::unexpected(std::move(told.error()));
  return {};
}

Result<LeftJobs> recover_jobs(SqlDriver& driver, const InstanceId& self, TimePoint at,
                              const std::vector<std::chrono::seconds>& pauses, JobEnd end) {
  static const std::string kLeft = fmt::format(fmt::runtime(kLeftRunning), owner_has_ended("jobs"));
  const auto left = driver.execute(kLeft, {self.str()});
  if (!left) return std::unexpected(left.error());
  LeftJobs jobs;
  for (const SqlRow& row : left->rows) {
    end.id = id_in<JobId>(row.at(0));
    const std::int64_t attempts = whole_in(row.at(1)).value_or(1);
    const bool is_last = attempts >= whole_in(row.at(2)).value_or(1) || pauses.empty();
    Result<void> written;
    if (is_last) {
      written = end_job(driver, end);
      ++jobs.interrupted;
    } else {
      const auto pause =
          pauses[std::min(static_cast<std::size_t>(std::max<std::int64_t>(attempts, 1)),
                          pauses.size()) -
                 1];
      written = without_rows(driver.execute(kRequeueJob, {end.id.str(), unix_seconds(at + pause)}));
      ++jobs.requeued;
    }
    if (!written) return std::unexpected(std::move(written.error()));
  }
  return jobs;
}

Result<std::vector<JobId>> job_ids_in(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<JobId> ids;
  ids.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) ids.push_back(id_in<JobId>(row.at(0)));
  return ids;
}

}  // namespace

Async<void> JobRows::add(Job job, std::string body, JobLimits limits, std::optional<KeyWrite> key) {
  Lane lane(job.app);
  const std::size_t bytes = body.size();
  const auto kept = std::make_shared<const std::string>(std::move(body));
  auto adding = worker_.call<QueueFull>(
      std::move(lane), Access::write,
      [job = std::move(job), kept, limits, key = std::move(key)](SqlDriver& driver) {
        auto full = insert_job(driver, job, kept, limits);
        if (!full || *full || !key) return full;
        if (auto written = write_key(driver, *key); !written) {
          return Result<QueueFull>(std::unexpected(std::move(written.error())));
        }
        return full;
      },
      OnStall::wait, bytes);
  const auto full = co_await std::move(adding);
  if (!full) co_return std::unexpected(full.error());
  if (const QueueFull& queued = *full) {
    auto refused =
        fail_for_now(Errc::over_quota, "too_many_jobs",
                     "This app has as many jobs queued as it may have; wait until some have "
                     "started, or cancel some.",
                     kTooManyJobsWait);
    refused.error().limit = standing_limit("jobs", limits.queued_max_per_app, *queued);
    co_return refused;
  }
  co_return Result<void>{};
}

Async<JobRecord> JobRows::find(AppName app, JobId id) const {
  Lane lane(app);
  auto finding = worker_.call<std::optional<JobRecord>>(
      std::move(lane), Access::read, [app = std::move(app), id = std::move(id)](SqlDriver& driver) {
        return select_job(driver, app, id);
      });
  auto found = co_await std::move(finding);
  if (!found) co_return std::unexpected(std::move(found.error()));
  std::optional<JobRecord> record = std::move(*found);
  if (!record) co_return no_such_job();
  co_return std::move(*record);
}

Async<WaitingJobs> JobRows::waiting(AppName app, TimePoint now, bool leaves_out_runs,
                                    std::int64_t limit) const {
  Lane lane(app);
  return worker_.call<WaitingJobs>(
      std::move(lane), Access::read,
      [app = std::move(app), now, leaves_out_runs, limit](SqlDriver& driver) {
        return select_waiting(driver, app, unix_seconds(now), leaves_out_runs, limit);
      });
}

Async<std::optional<std::string>> JobRows::body_of(JobId id, Lane lane) const {
  return worker_.call<std::optional<std::string>>(
      std::move(lane), Access::read,
      [id = std::move(id)](SqlDriver& driver) -> Result<std::optional<std::string>> {
        const auto found = driver.execute(kBodyOfJob, {id.str()});
        if (!found) return std::unexpected(found.error());
        if (found->rows.empty()) return std::nullopt;
        return text_in(found->rows.front().at(0)).value_or("");
      });
}

Async<bool> JobRows::begin(Job job, TimePoint at) {
  Lane lane(job.app);
  return worker_.call<bool>(
      std::move(lane), Access::write,
      [job = std::move(job), at, self = self_](SqlDriver& driver) {
        return is_one_changed(
            driver.execute(kBeginJob, {job.id.str(), unix_seconds(at), self.str(),
                                       sql_value(job.turn_index), job.after_event}));
      },
      OnStall::wait);
}

Async<void> JobRows::requeue(JobId id, TimePoint ready_at, Lane lane) {
  return worker_.call<void>(
      std::move(lane), Access::write,
      [id = std::move(id), ready_at](SqlDriver& driver) {
        return without_rows(driver.execute(kRequeueJob, {id.str(), unix_seconds(ready_at)}));
      },
      OnStall::wait);
}

Async<void> JobRows::postpone(JobId id, TimePoint ready_at, Lane lane) {
  return worker_.call<void>(
      std::move(lane), Access::write, [id = std::move(id), ready_at](SqlDriver& driver) {
        return without_rows(driver.execute(kPostponeJob, {id.str(), unix_seconds(ready_at)}));
      });
}

Async<void> JobRows::end(JobEnd end) {
  Lane lane(end.app);
  const std::size_t bytes = end.answer.size();
  return worker_.call<void>(
      std::move(lane), Access::write,
      [end = std::move(end)](SqlDriver& driver) { return end_job(driver, end); }, OnStall::wait,
      bytes);
}

Async<bool> JobRows::cancel(AppName app, JobId id, TimePoint at) {
  Lane lane(app);
  enum class Found { none, queued, other };
  auto cancelling = worker_.call<Found>(
      std::move(lane), Access::write,
      [app = std::move(app), id = std::move(id), at](SqlDriver& driver) -> Result<Found> {
        const auto found = driver.execute(kHasJob, {id.str(), app.str()});
        if (!found) return std::unexpected(found.error());
        if (found->rows.empty()) return Found::none;
        static const std::string kCancel = fmt::format(fmt::runtime(kCancelJob), kJobColumns);
        const auto is_cancelled =
            tell_end(driver, driver.execute(kCancel, {id.str(), unix_seconds(at)}), {});
        if (!is_cancelled) return std::unexpected(is_cancelled.error());
        return *is_cancelled ? Found::queued : Found::other;
      },
      OnStall::wait);
  const auto found = co_await std::move(cancelling);
  if (!found) co_return std::unexpected(found.error());
  if (*found == Found::none) co_return no_such_job();
  co_return *found == Found::queued;
}

Async<std::int64_t> JobRows::cancel_all(AppName app, TimePoint at) {
  return worker_.call<std::int64_t>(
      Lane(), Access::write, [app = std::move(app), at](SqlDriver& driver) {
        return changed_by(driver.execute(kCancelJobsOfApp, {app.str(), unix_seconds(at)}));
      });
}

Async<std::vector<JobId>> JobRows::ended(TimePoint last, std::int64_t limit) const {
  return worker_.call<std::vector<JobId>>(Lane(), Access::read, [last, limit](SqlDriver& driver) {
    return job_ids_in(driver.execute(kEndedJobs, {unix_seconds(last), limit}));
  });
}

Async<void> JobRows::remove(std::vector<JobId> ids) {
  return worker_.call<void>(Lane(), Access::write,
                            [ids = std::move(ids)](SqlDriver& driver) -> Result<void> {
                              for (const JobId& id : ids) {
                                auto removed = driver.execute(kRemoveJob, {id.str()});
                                if (!removed) return std::unexpected(std::move(removed.error()));
                              }
                              return {};
                            });
}

Async<std::vector<JobId>> JobRows::with_files() const {
  return worker_.call<std::vector<JobId>>(Lane(), Access::read, [](SqlDriver& driver) {
    return job_ids_in(driver.execute(kJobsWithFiles));
  });
}

Async<LeftJobs> JobRows::recover(TimePoint at, std::span<const std::chrono::seconds> pauses,
                                 JobEnd interrupted) {
  return worker_.call<LeftJobs>(Lane(), Access::write,
                                [self = self_, at, kept = std::vector(pauses.begin(), pauses.end()),
                                 end = std::move(interrupted)](SqlDriver& driver) {
                                  return recover_jobs(driver, self, at, kept, end);
                                });
}

}  // namespace clawdforge
