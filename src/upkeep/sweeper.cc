#include "upkeep/sweeper.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "base/async_tokens.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kSweepPageMax = 500;         // uploads looked at and removed together
constexpr std::int64_t kSweepAuditRowsMax = 1'000;  // of each list, removed in one transaction
// Of one tick, so that the audit of years does not keep it busy for hours: the next goes on.
constexpr int kSweepAuditPagesMax = 1'000;

struct Mismatch {
  std::vector<std::string> strays;  // files that no row knows
  std::vector<Digest> empty;        // rows without a file
};

// Decides only.
Mismatch compare(const std::vector<std::string>& files, const std::vector<Digest>& rows) {
  Mismatch found;
  std::unordered_set<std::string> known;
  for (const Digest& row : rows) known.insert(to_hex(row));
  std::unordered_set<std::string> there;
  for (const std::string& file : files) {
    if (known.contains(file)) {
      there.insert(file);
    } else {
      found.strays.push_back(file);
    }
  }
  for (const Digest& row : rows) {
    if (!there.contains(to_hex(row))) found.empty.push_back(row);
  }
  return found;
}

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

Sweeper::Sweeper(IoExecutor executor, Ledger& ledger, UploadFiles& uploads, const Clock& clock,
                 Log& log, Metrics& metrics, Times times)
    : ledger_(ledger),
      uploads_(uploads),
      clock_(clock),
      log_(log),
      times_(times),
      pause_(executor),
      sweeps_(metrics.counter("clawdforge_sweeps_total", "Sweeps that were begun.")),
      files_deleted_(
          metrics.counter("clawdforge_swept_files_total", "Expired uploads that were deleted.")),
      failures_(metrics.counter("clawdforge_sweep_failures_total",
                                "Things that a sweep could not remove.")) {}

Async<UploadsRecovered> Sweeper::recover_uploads() {
  auto files = co_await uploads_.names();
  if (!files) co_return std::unexpected(std::move(files.error()));
  auto rows = co_await ledger_.all_uploads();
  if (!rows) co_return std::unexpected(std::move(rows.error()));
  Mismatch found = compare(*files, *rows);
  UploadsRecovered recovered{.files_removed = static_cast<std::int64_t>(found.strays.size()),
                             .rows_removed = static_cast<std::int64_t>(found.empty.size())};
  if (found.strays.empty() && found.empty.empty()) co_return recovered;
  const auto tidied = co_await uploads_.remove_named(std::move(found.strays));
  if (!tidied) {
    recovered.files_removed = 0;  // how many are left is not known
    log_.warn("a file that no upload knows cannot be removed",
              {{"why", std::string_view(tidied.error().detail)}});
  }
  if (found.empty.empty()) co_return recovered;
  const auto removed = co_await ledger_.remove_uploads(std::move(found.empty));
  if (!removed) co_return std::unexpected(removed.error());
  co_return recovered;
}

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
    auto did = co_await chore(&swept);
    if (!did && done) done = std::move(did);
  }
  files_deleted_.increment(swept.files_deleted);
  failures_.increment(swept.failed);
  if (swept.files_deleted + swept.soft_closed + swept.hard_deleted + swept.audit_rows_deleted > 0) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    log_.info("swept", {{"files_deleted", swept.files_deleted},
                        {"sessions_closed", swept.soft_closed},
                        {"sessions_deleted", swept.hard_deleted},
                        {"audit_rows_deleted", swept.audit_rows_deleted},
                        {"failed", swept.failed},
                        {"duration_ms", static_cast<std::int64_t>(took.count())}});
  }
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return swept;
}

// The file goes first and its row second. A row that is left over has expired, so nobody
// can use it, and the next tick finds it again: whichever of the two steps fails or is cut
// off, it is made good without a restart. The other way round, a file whose removal failed
// would be found by nobody before the next start.
Async<void> Sweeper::sweep_uploads(SweepReport* report) {
  for (;;) {
    auto page = co_await ledger_.expired_uploads(clock_.now(), kSweepPageMax);
    if (!page) co_return std::unexpected(std::move(page.error()));
    const auto count = static_cast<std::int64_t>(page->size());
    if (count == 0) co_return Result<void>{};
    auto removal = co_await uploads_.remove_and_tell(std::move(*page));
    if (!removal) co_return std::unexpected(std::move(removal.error()));
    const auto gone = static_cast<std::int64_t>(removal->gone.size());
    if (gone < count) {
      report->failed = count - gone;  // the same ones come again with every page
      log_.warn("expired uploads cannot be removed",
                {{"count", count - gone}, {"why", std::string_view(removal->why_not)}});
    }
    if (gone == 0) co_return Result<void>{};
    auto removed = co_await ledger_.remove_uploads(std::move(removal->gone));
    if (!removed) co_return std::unexpected(std::move(removed.error()));
    report->files_deleted += gone;
    if (count < kSweepPageMax) co_return Result<void>{};
  }
}

Async<void> Sweeper::sweep_audit(SweepReport* report) {
  if (!times_.audit_age_max) co_return Result<void>{};
  for (int page = 0; page < kSweepAuditPagesMax && !is_stopped_; ++page) {
    const auto trimmed =
        co_await ledger_.trim_audit(clock_.now() - *times_.audit_age_max, kSweepAuditRowsMax);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    report->audit_rows_deleted += *trimmed;
    if (*trimmed < kSweepAuditRowsMax) break;
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
    log_.error("sweeping fails",
               {{"code", swept.error().code}, {"why", std::string_view(swept.error().detail)}});
  }
  if (swept && is_failing_) log_.info("sweeping works again");
  is_failing_ = !swept;
}

}  // namespace clawdforge
