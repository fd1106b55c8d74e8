// LedgerWorker is the thread that owns the database connection. Calls come through a bounded
// queue, which is fair between apps: those of one app are done in order of arrival. They are
// done in groups: a lone write commits at once, what arrives while a commit runs is committed
// together, one call of each app after another. Nothing is answered
// before the commit of the transaction it was done in, and the answers of a group go back
// to the io thread in one step.
//
// One bad call never spoils another: when a call fails inside a group, the group is
// rolled back, those before it are committed again without it, it runs alone, and the
// rest go on as a group. So a call may run more than once before it is answered.
//
// Long reads have a connection and a thread of their own, where the owner gives one: no commit
// waits for them. What was answered before such a read was asked for is committed, so it is seen.
//
// A worker that has been at the same group for too long is stuck, in a disk that does not
// answer. Then new calls are refused at once, and those that wait are answered by
// answer_stalled_calls(), which the owner calls about once a second.
//
// Belongs to a Ledger, on the io thread; ends by stop(), which finishes what is queued.
#pragma once

#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/async/worker_thread.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "ledger/core/ledger_job.h"

namespace clawdforge {

struct LedgerWorkerOptions {
  std::size_t ledger_jobs_max = 4'096;  // waiting, of all apps
  std::size_t ledger_jobs_max_per_app = lane_share_of(ledger_jobs_max);
  std::size_t group_jobs_max = 512;               // in one commit
  std::size_t group_bytes_max = 8 * 1024 * 1024;  // likewise; one call may have more
  // For one group. Longer than another program's lock is waited for, and than a slow disk takes.
  std::chrono::milliseconds ledger_stall_max{10'000};
  bool tidies = true;  // false: another connection sees to the database's log
};

class LedgerWorker {
 public:
  // `log` and `metrics` outlive the worker, the io_context of `executor` as well. `reader` is
  // another connection to the same database, for read(); null: there is one connection for all.
  LedgerWorker(std::unique_ptr<SqlDriver> driver, IoExecutor executor, LedgerWorkerOptions options,
               Log& log, Metrics& metrics, std::unique_ptr<SqlDriver> reader = nullptr);
  ~LedgerWorker() { stop(); }
  LedgerWorker(const LedgerWorker&) = delete;
  LedgerWorker& operator=(const LedgerWorker&) = delete;

  // `work` runs on the worker inside a transaction, must change nothing but the database,
  // and must come to the same if it runs again after a rollback.
  template <class T>
  Async<T> call(Lane lane, Access access, LedgerWork<T> work, OnStall on_stall = OnStall::refuse,
                std::size_t bytes = 0) {
    using Token = boost::asio::use_awaitable_t<IoExecutor>;
    Token token;
    return boost::asio::async_initiate<Token, void(Result<T>)>(
        [this, bytes](auto handler, Lane lane_of_it, Access asked, OnStall on_stall_of_it,
                      LedgerWork<T> to_do) {
          submit(lane_of_it,
                 std::make_unique<LedgerCall<T>>(executor_, asked, on_stall_of_it, bytes,
                                                 std::move(to_do), std::move(handler)));
        },
        token, std::move(lane), access, on_stall, std::move(work));
  }

  // A read that may take long, such as a page of a journal or of a list.
  template <class T>
  Async<T> read(Lane lane, LedgerWork<T> work) {
    LedgerWorker& worker = reads_ ? *reads_ : *this;
    return worker.call<T>(std::move(lane), Access::read, std::move(work));
  }

  // Io thread.
  bool is_healthy() const {
    return reads_work_ && writes_work_ && !is_stalled_ && !(reads_ && reads_->is_stalled_);
  }
  void answer_stalled_calls();
  // Without asking the worker: the same as the last one means that no other program has changed the
  // ledger meanwhile. None: it may have, or the ledger is not well.
  std::optional<std::uint64_t> foreign_mark() const {
    if (!changes_ || !is_healthy()) return std::nullopt;
    return changes_->mark();
  }

  // Takes no more calls, finishes those it has, closes the database. Blocks; may be called
  // again.
  void stop();

 private:
  using Job = std::unique_ptr<LedgerJob>;
  using Jobs = std::span<Job>;

  void submit(const Lane& lane, Job job);
  void refuse(Job job, std::string why);

  // All below: worker thread.
  void run(std::vector<Job> jobs);
  // How many of `jobs`, at least one, go into one commit.
  std::size_t group_size(Jobs jobs) const;
  void run_together(std::vector<Job> jobs);
  void run_group(Jobs jobs);
  void run_each(Jobs jobs, std::optional<Failure> no_entry);
  // How many of `jobs` went well until one failed; all of them have been committed if all
  // went well, else none. Nothing: beginning or committing failed.
  std::optional<std::size_t> attempt_together(Jobs jobs, std::optional<Failure>& no_entry);
  Result<void> commit(Access access);
  void answer(std::vector<Job> jobs);
  void take_note(const LedgerJob& job);
  void tidy(Moment moment);
  static LedgerWorkerOptions for_reads(LedgerWorkerOptions options);

  std::unique_ptr<SqlDriver> driver_;
  const std::shared_ptr<const ForeignChanges> changes_;  // null: the driver has none
  const IoExecutor executor_;
  const LedgerWorkerOptions options_;
  Log& log_;
  Gauge& queued_;
  Histogram& commit_seconds_;
  Histogram& call_seconds_;
  Counter& committed_;
  Counter& failed_;
  Counter& untidy_;
  Counter& unknown_;
  WorkerJobList<LedgerJob> waiting_;  // io thread: what has not been answered
  bool is_stalled_ = false;           // io thread
  std::atomic<bool> reads_work_ = true;
  std::atomic<bool> writes_work_ = true;
  const std::unique_ptr<LedgerWorker> reads_;  // null: this one does them
  WorkerThread<Job> thread_;                   // last: it uses all above
};

}  // namespace clawdforge
