#include "upkeep/session_sweep.h"

#include <utility>

#include "sessions/session_closer.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kSweepSessionsMax = 500;       // looked at together
constexpr std::int64_t kSweepJournalRowsMax = 1'000;  // removed in one transaction
// A bound on the pages of one tick: the next tick goes on.
constexpr int kSweepPagesMax = 1'000;

}  // namespace

Async<void> SessionSweep::sweep(SweepReport* report) {
  auto done = co_await deps_.sessions.closer().follow_ledger();
  if (!done) co_return done;
  done = co_await close_idle(report);
  if (!done) co_return done;
  done = co_await delete_closed(report);
  if (!done) co_return done;
  co_return co_await trim_journals();
}

Async<void> SessionSweep::close_idle(SweepReport* report) {
  for (int page = 0; page < kSweepPagesMax && !is_stopped_; ++page) {
    const TimePoint last = deps_.clock.now() - limits_.ttl;
    const auto idle = co_await deps_.rows.idle(last, kSweepSessionsMax);
    if (!idle) co_return std::unexpected(idle.error());
    std::int64_t closed = 0;
    for (const Session& session : *idle) {
      if (is_stopped_) break;
      const auto did = co_await deps_.sessions.closer().sweep(session.id, last);
      if (!did) co_return std::unexpected(did.error());
      if (*did) ++closed;
    }
    report->soft_closed += closed;
    // What is busy stays, and would come again with every page.
    if (closed == 0 || std::cmp_less(idle->size(), kSweepSessionsMax)) break;
  }
  co_return Result<void>{};
}

Async<void> SessionSweep::delete_closed(SweepReport* report) {
  for (int page = 0; page < kSweepPagesMax && !is_stopped_; ++page) {
    const auto old =
        co_await deps_.rows.closed(deps_.clock.now() - limits_.hard_ttl, kSweepSessionsMax);
    if (!old) co_return std::unexpected(old.error());
    for (const SessionId& id : *old) {
      if (is_stopped_) break;
      const auto deleted = co_await delete_one(id);
      if (!deleted) co_return std::unexpected(deleted.error());
      if (*deleted) ++report->hard_deleted;
    }
    if (std::cmp_less(old->size(), kSweepSessionsMax)) break;
  }
  co_return Result<void>{};
}

// A long journal goes piece by piece, so that other writes get their turn.
Async<bool> SessionSweep::delete_one(SessionId id) {
  if (auto cleared = co_await deps_.sessions.closer().clear(id); !cleared) {
    co_return std::unexpected(std::move(cleared.error()));
  }
  for (int page = 0; page < kSweepPagesMax && !is_stopped_; ++page) {
    AuditEvent event{.event = "hard_delete", .at = deps_.clock.now()};
    const auto is_gone =
        co_await deps_.rows.remove_closed(id, std::move(event), kSweepJournalRowsMax);
    if (!is_gone) co_return is_gone;
    if (!*is_gone) continue;
    deps_.sessions.closer().forget_snapshot(id);
    deps_.dirs.remove(std::move(id).str());
    co_return true;
  }
  co_return false;
}

Async<void> SessionSweep::trim_journals() {
  for (int page = 0; page < kSweepPagesMax && !is_stopped_; ++page) {
    const auto trimmed = co_await deps_.journal.trim_old(
        deps_.clock.now() - limits_.journal_age_max, kSweepJournalRowsMax);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    if (*trimmed < kSweepJournalRowsMax) break;
  }
  for (int page = 0; page < kSweepPagesMax && !is_stopped_; ++page) {
    const auto trimmed =
        co_await deps_.journal.trim_large(limits_.journal_bytes_max, kSweepJournalRowsMax);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    if (*trimmed < kSweepJournalRowsMax) break;
  }
  co_return Result<void>{};
}

}  // namespace clawdforge
