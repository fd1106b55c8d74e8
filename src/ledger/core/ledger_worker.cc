#include "ledger/core/ledger_worker.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>

namespace clawdforge {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// A group with as much as this is tidied up after at once. Else the log would grow until there is
// so much to copy back that all wait for it.
constexpr std::size_t kPromptTidyBytesMin = 256 * 1024;

double seconds_since(SteadyTime begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

LedgerWorker::LedgerWorker(std::unique_ptr<SqlDriver> driver, IoExecutor executor,
                           LedgerWorkerOptions options, Log& log, Metrics& metrics,
                           std::unique_ptr<SqlDriver> reader)
    : driver_(std::move(driver)),
      changes_(driver_->foreign_changes()),
      executor_(executor),
      options_(options),
      log_(log),
      queued_(metrics.gauge("clawdforge_ledger_queue_jobs",
                            "Calls to the ledger that wait or are being done.")),
      commit_seconds_(metrics.durations("clawdforge_ledger_commit_seconds",
                                        "Duration of one commit to the ledger.")),
      call_seconds_(metrics.durations("clawdforge_ledger_call_seconds",
                                      "Duration of a call to the ledger, waiting included.")),
      committed_(metrics.counter("clawdforge_ledger_committed_jobs_total",
                                 "Calls to the ledger that went well.")),
      failed_(metrics.counter("clawdforge_ledger_failed_jobs_total",
                              "Calls to the ledger that ended in an error, refusals included.")),
      untidy_(metrics.counter("clawdforge_ledger_failed_checkpoints_total",
                              "Checkpoints of the ledger that failed.")),
      unknown_(metrics.counter("clawdforge_ledger_stalled_jobs_total",
                               "Calls answered before the ledger did, because it was stuck.")),
      reads_(reader ? std::make_unique<LedgerWorker>(std::move(reader), executor,
                                                     for_reads(options), log, metrics)
                    : nullptr),
      thread_({.jobs_max = options.ledger_jobs_max,
               .lane_jobs_max = options.ledger_jobs_max_per_app,
               .batch_max = options.group_jobs_max},
              options.ledger_stall_max,
              {.work = [this](std::vector<Job> jobs) { run(std::move(jobs)); },
               .end =
                   [this] {
                     tidy(Moment::closing);
                     driver_.reset();
                   }}) {}

LedgerWorkerOptions LedgerWorker::for_reads(LedgerWorkerOptions options) {
  options.tidies = false;
  return options;
}

// The reads first: what they still see of the database's log could not be tidied away.
void LedgerWorker::stop() {
  if (reads_) reads_->stop();
  thread_.stop();
}

void LedgerWorker::submit(const Lane& lane, Job job) {
  queued_.add(1);
  if (is_stalled_ && thread_.is_stuck()) return refuse(std::move(job), "it does not answer");
  LedgerJob& waiting = *job;
  waiting_.push_back(waiting);
  if (thread_.put(lane, std::move(job))) return;
  // NOLINTNEXTLINE(bugprone-use-after-move): what the queue refuses stays here
  refuse(std::move(job), "the queue is full or closed");
}

void LedgerWorker::refuse(Job job, std::string why) {
  job->refuse(ledger_unavailable(std::move(why)).error());
  failed_.increment();
  std::vector<Job> refused;
  refused.push_back(std::move(job));
  answer(std::move(refused));
}

void LedgerWorker::answer_stalled_calls() {
  if (reads_) reads_->answer_stalled_calls();
  const bool was_stalled = std::exchange(is_stalled_, thread_.is_stuck());
  if (was_stalled && !is_stalled_) log_.info("the ledger is not stuck any more");
  if (!is_stalled_) return;
  if (!was_stalled) {
    log_.error("the ledger is stuck", {{"detail", "its disk does not answer; calls are refused"}});
  }
  // A caller that is answered here may make another call at once; that one is refused.
  std::vector<LedgerJob*> all;
  for (LedgerJob& job : waiting_) all.push_back(&job);
  for (LedgerJob* job : all) {
    if (job->withdraw()) {
      failed_.increment();
      job->unlink();
      job->answer_early(ledger_unavailable("it does not answer").error());
    } else if (job->on_stall() == OnStall::refuse) {
      unknown_.increment();
      job->unlink();
      const bool is_write = job->access() == Access::write;
      job->answer_early(is_write ? ledger_stalled("the ledger is stuck in a write").error()
                                 : ledger_unavailable("it does not answer").error());
    }
  }
}

// What the queue gives at once is one group, unless it is too much for one commit.
void LedgerWorker::run(std::vector<Job> jobs) {
  for (Jobs rest = jobs; !rest.empty();) {
    const Jobs next = rest.first(group_size(rest));
    rest = rest.subspan(next.size());
    run_together({std::make_move_iterator(next.begin()), std::make_move_iterator(next.end())});
  }
  if (thread_.queued() == 0) tidy(Moment::idle);
}

std::size_t LedgerWorker::group_size(Jobs jobs) const {
  std::size_t size = 1;
  std::size_t bytes = jobs.front()->bytes();
  for (; size < jobs.size(); ++size) {
    bytes += jobs[size]->bytes();
    if (bytes > options_.group_bytes_max) break;
  }
  return size;
}

void LedgerWorker::run_together(std::vector<Job> jobs) {
  thread_.begin_step();
  std::vector<Job> group;
  std::vector<Job> withdrawn;
  group.reserve(jobs.size());
  std::size_t bytes = 0;
  for (Job& job : jobs) {
    bytes += job->bytes();
    (job->take() ? group : withdrawn).push_back(std::move(job));
  }
  run_group(group);
  for (const Job& job : group) take_note(*job);
  if (!withdrawn.empty()) answer(std::move(withdrawn));
  answer(std::move(group));
  tidy(bytes < kPromptTidyBytesMin ? Moment::busy : Moment::idle);
}

void LedgerWorker::run_group(Jobs jobs) {
  while (!jobs.empty()) {
    std::optional<Failure> no_entry;
    const std::optional<std::size_t> good = attempt_together(jobs, no_entry);
    if (!good) return run_each(jobs, std::move(no_entry));
    if (*good == jobs.size()) return;
    const Jobs before = jobs.first(*good);
    if (!before.empty() && attempt_together(before, no_entry) != before.size()) {
      run_each(before, no_entry);
    }
    run_each(jobs.subspan(*good, 1), std::move(no_entry));
    jobs = jobs.subspan(*good + 1);
  }
}

void LedgerWorker::run_each(Jobs jobs, std::optional<Failure> no_entry) {
  // Waiting for another program's lock once is enough: the limit holds for all together.
  for (Job& job : jobs) {
    if (no_entry && job->access() == Access::write) {
      job->refuse(*no_entry);
      continue;
    }
    if (auto begun = driver_->begin(job->access()); !begun) {
      if (job->access() == Access::write) no_entry = begun.error();
      job->refuse(std::move(begun.error()));
      continue;
    }
    job->attempt(*driver_);
    if (job->error() == nullptr) {
      auto committed = commit(job->access());
      if (!committed) job->refuse(std::move(committed.error()));
    }
    if (job->error() != nullptr) driver_->rollback();
  }
}

std::optional<std::size_t> LedgerWorker::attempt_together(Jobs jobs,
                                                          std::optional<Failure>& no_entry) {
  const bool writes =
      std::ranges::any_of(jobs, [](const Job& job) { return job->access() == Access::write; });
  const Access access = writes ? Access::write : Access::read;
  if (auto begun = driver_->begin(access); !begun) {
    if (writes) no_entry = std::move(begun.error());
    return std::nullopt;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i]->attempt(*driver_);
    if (jobs[i]->error() == nullptr) continue;
    driver_->rollback();
    return i;
  }
  if (commit(access)) return jobs.size();
  driver_->rollback();
  return std::nullopt;
}

Result<void> LedgerWorker::commit(Access access) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  auto committed = driver_->commit();
  if (committed && access == Access::write) commit_seconds_.observe(seconds_since(begin));
  return committed;
}

void LedgerWorker::answer(std::vector<Job> jobs) {
  queued_.add(-static_cast<std::int64_t>(jobs.size()));
  boost::asio::post(executor_, [jobs = std::move(jobs), &histogram = call_seconds_] {
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const Job& job : jobs) {
      histogram.observe(std::chrono::duration<double>(now - job->since()).count());
      job->answer();
    }
  });
}

void LedgerWorker::take_note(const LedgerJob& job) {
  const Failure* error = job.error();
  (error == nullptr ? committed_ : failed_).increment();
  // The others say something about what was asked, not about the ledger.
  if (error != nullptr && error->kind != Errc::unavailable) return;
  const bool writes = job.access() == Access::write;
  std::atomic<bool>& works = writes ? writes_work_ : reads_work_;
  if (works.exchange(error == nullptr) == (error == nullptr)) return;
  const std::string_view what = writes ? "writes" : "reads";
  if (error == nullptr) {
    log_.info("the ledger works again", {{"for", what}});
  } else {
    log_.error("the ledger fails", {{"for", what}, {"detail", std::string_view(error->detail)}});
  }
}

void LedgerWorker::tidy(Moment moment) {
  if (!options_.tidies) return;
  const auto tidied = driver_->tidy(moment);
  if (tidied) return;
  untidy_.increment();
  log_.warn("a checkpoint of the ledger failed",
            {{"detail", std::string_view(tidied.error().detail)}});
}

}  // namespace clawdforge
