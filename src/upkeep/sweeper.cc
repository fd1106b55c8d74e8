#include "upkeep/sweeper.h"

#include <string>
#include <vector>

#include "base/async/async_tokens.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/run_rows.h"
#include "ledger/rows/upload_rows.h"
#include "storage/work/upload_files.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kSweepPageMax = 500;         // uploads looked at and removed together
constexpr std::int64_t kSweepAuditRowsMax = 1'000;  // of each list, removed in one transaction
// Of one tick, so that the audit of years does not keep it busy for hours: the next goes on.
constexpr int kSweepAuditPagesMax = 1'000;

}  // namespace

// The right to sweep. Given back on every path, also when the coroutine is cancelled.
class Sweeper::Turn {
 public:
  explicit Turn(Sweeper& sweeper) : sweeper_(sweeper) { sweeper_.is_sweeping_ = true; }
  ~Turn() {
    sweeper_.is_sweeping_ = false;
    sweeper_.idle_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Sweeper& sweeper_;
};

Sweeper::Sweeper(Dependencies deps, Times times)
    : deps_(deps),
      times_(times),
      pause_(deps.executor),
      sweeps_(deps.metrics.counter("clawdforge_sweeps_total", "Sweeps that were begun.")),
      files_deleted_(deps.metrics.counter("clawdforge_swept_files_total",
                                          "Expired uploads that were deleted.")),
      failures_(deps.metrics.counter("clawdforge_sweep_failures_total",
                                     "Things that a sweep could not remove.")) {}

Async<SweepReport> Sweeper::tick() {
  while (is_sweeping_) co_await idle_.wait();
  const Turn turn(*this);
  co_return co_await sweep();
}

void Sweeper::add(Chore chore) { chores_.push_back(std::move(chore)); }

Async<SweepReport> Sweeper::sweep() {
  const auto begin = std::chrono::steady_clock::now();
  sweeps_.increment();
  SweepReport swept;
  auto done = co_await sweep_uploads(&swept);
  if (auto trimmed = co_await sweep_audit(&swept); !trimmed && done) done = std::move(trimmed);
  for (const Chore& chore : chores_) {
    // Each would wait for the ledger once more.
    if (!done && done.error().cause == Cause::ledger_away) break;
    auto did = co_await chore(&swept);
    if (!did && done) done = std::move(did);
  }
  files_deleted_.increment(swept.files_deleted);
  failures_.increment(swept.failed);
  if (swept.files_deleted + swept.soft_closed + swept.hard_deleted + swept.audit_rows_deleted > 0) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    deps_.log.info("swept", {{"files_deleted", swept.files_deleted},
                             {"sessions_closed", swept.soft_closed},
                             {"sessions_deleted", swept.hard_deleted},
                             {"audit_rows_deleted", swept.audit_rows_deleted},
                             {"failed", swept.failed},
                             {"duration_ms", static_cast<std::int64_t>(took.count())}});
  }
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return swept;
}

// The file goes first and its row second. A row that is left over has expired, so no run can
// use it, and the next tick finds it again: whichever of the two steps fails or is cut off, it
// is made good without a restart. The other way round, a file whose removal failed would stay
// until the next start.
Async<void> Sweeper::sweep_uploads(SweepReport* report) {
  for (;;) {
    auto page = co_await deps_.uploads.expired(deps_.clock.now(), kSweepPageMax);
    if (!page) co_return std::unexpected(std::move(page.error()));
    const auto count = static_cast<std::int64_t>(page->size());
    if (count == 0) co_return Result<void>{};
    auto removal = co_await deps_.upload_files.remove_and_tell(std::move(*page));
    if (!removal) co_return std::unexpected(std::move(removal.error()));
    const auto gone = static_cast<std::int64_t>(removal->gone.size());
    if (gone < count) {
      report->failed = count - gone;  // the same ones come again with every page
      deps_.log.warn("expired uploads cannot be removed",
                     {{"count", count - gone}, {"why", std::string_view(removal->why_not)}});
    }
    if (gone == 0) co_return Result<void>{};
    auto removed = co_await deps_.uploads.remove(std::move(removal->gone));
    if (!removed) co_return std::unexpected(std::move(removed.error()));
    report->files_deleted += gone;
    if (count < kSweepPageMax) co_return Result<void>{};
  }
}

Async<void> Sweeper::sweep_audit(SweepReport* report) {
  if (!times_.audit_age_max) co_return Result<void>{};
  for (int page = 0; page < kSweepAuditPagesMax && !is_stopped_; ++page) {
    const TimePoint last = deps_.clock.now() - *times_.audit_age_max;
    const auto lines = co_await deps_.audit.trim(last, kSweepAuditRowsMax);
    if (!lines) co_return std::unexpected(lines.error());
    const auto runs = co_await deps_.runs.trim(last, kSweepAuditRowsMax);
    if (!runs) co_return std::unexpected(runs.error());
    report->audit_rows_deleted += *lines + *runs;
    if (*lines + *runs < kSweepAuditRowsMax) break;
  }
  co_return Result<void>{};
}

Task<void> Sweeper::run() {
  while (!is_stopped_) {
    pause_.expires_after(times_.interval);
    co_await pause_.async_wait(kAwait);
    if (is_stopped_) co_return;
    const auto swept = co_await tick();
    report(swept);
  }
}

void Sweeper::stop() {
  is_stopped_ = true;
  pause_.cancel();
}

void Sweeper::report(const Result<SweepReport>& swept) {
  if (!swept && !is_failing_) {
    deps_.log.error("sweeping fails", {{"code", swept.error().code},
                                       {"why", std::string_view(swept.error().detail)}});
  }
  if (swept && is_failing_) deps_.log.info("sweeping works again");
  is_failing_ = !swept;
}

}  // namespace clawdforge
