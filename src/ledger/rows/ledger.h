// The ledger is what survives a restart. The io thread asks, a worker thread does:
// every call hops to the worker and back. A write is answered only after its commit;
// an answer that is an error means that nothing of the call was kept. Calls are done in
// the order in which they were awaited, so a caller reads its own earlier writes. A call
// that has begun cannot be cancelled: it is answered later, and its coroutine goes on then.
//
// Errors of every call: Errc::unavailable, code "ledger_unavailable", when the queue
// is full, the disk is full, the file is locked by another program for too long,
// read-only, damaged, moved or gone; the detail says which. A write that the worker has in
// hand when it gets stuck is answered with "ledger_stalled": it may be kept or not, and
// whoever undoes it later is done after it. Only write_session() waits for the truth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/clock.h"
#include "ledger/core/ledger_records.h"
#include "model/app.h"
#include "model/run.h"
#include "model/session.h"
#include "model/upload.h"

namespace clawdforge {

class LedgerReader {
 public:
  virtual ~LedgerReader() = default;

  virtual Async<AppList> apps() = 0;
  virtual Async<std::int64_t> open_session_count() = 0;
  virtual Async<RunPage> runs(AuditFilter filter) = 0;
  // Those of the app's uploads that are there and not expired at `now`, in the order of
  // the digests. Errc::not_found "file_not_found" if any is missing.
  virtual Async<std::vector<Upload>> find_uploads(std::string app, std::vector<Digest> digests,
                                                  TimePoint now) = 0;
  // The oldest first, at most `limit`.
  virtual Async<std::vector<Digest>> expired_uploads(TimePoint now, std::int64_t limit) = 0;
  virtual Async<std::vector<Digest>> all_uploads() = 0;
  // Errc::not_found "session_not_found". Without `system` and `mcp_servers`, which may be
  // large and only its agent needs: this is on the path of every turn.
  virtual Async<Session> find_session(std::string id) = 0;
  // The same with all of it.
  virtual Async<Session> load_session(std::string id) = 0;
  virtual Async<SessionPage> sessions(SessionFilter filter) = 0;
  virtual Async<AuditPage> session_events(AuditFilter filter) = 0;
  // Those of `ids` that are open.
  virtual Async<std::vector<std::string>> open_among(std::vector<std::string> ids) = 0;
  // Open sessions whose last turn, or creation, is at or before `last`, the oldest first.
  virtual Async<std::vector<Session>> idle_sessions(TimePoint last, std::int64_t limit) = 0;
  // Ids of sessions closed at or before `last`, the oldest first.
  virtual Async<std::vector<std::string>> closed_sessions(TimePoint last, std::int64_t limit) = 0;
  virtual Async<std::vector<std::string>> all_session_ids() = 0;
  // The session's journal from the block on that holds the first event behind `after`: at
  // least one block if there is any, and not much more than `bytes_max`.
  virtual Async<std::vector<JournalBlock>> journal(std::string session_id, std::int64_t after,
                                                   std::size_t bytes_max) = 0;
  // A number that differs from the last one when another program has changed the ledger.
  // It may differ without a reason, too.
  virtual Async<std::int64_t> foreign_change_mark() = 0;

  // False while the last write, or the last read, found the ledger unavailable. Io thread;
  // does not ask the worker. A queue that is full for a moment is no illness.
  virtual bool is_healthy() const = 0;
  // Io thread, about once a second: answers those who wait for a worker that is stuck.
  virtual void answer_stalled_calls() = 0;
};

class Ledger : public LedgerReader {
 public:
  virtual Async<void> begin_instance(Instance instance) = 0;
  virtual Async<void> end_instance(std::string id, TimePoint at) = 0;
  // A small write that shows whether the ledger takes writes (again). Brings the
  // instance's row back if another program has removed it.
  virtual Async<void> beat(std::string instance_id, TimePoint at) = 0;

  // Errc::conflict "name_taken".
  virtual Async<void> add_app(App app) = 0;
  // Another token for the same app. Errc::not_found "token_not_found".
  virtual Async<void> rotate_app(std::string name, Digest token_digest) = 0;
  // Takes the app's token away, closes its open sessions and lets its uploads expire, in
  // one step.
  // Errc::not_found "token_not_found".
  virtual Async<void> remove_app(std::string name, TimePoint at) = 0;
  // Times of last use, which only move forwards; apps that are gone are skipped.
  virtual Async<void> note_use(std::vector<AppUse> uses) = 0;

  // A run that begins, with its process.
  virtual Async<void> add_run(Run run, ProcessMark process) = 0;
  // How it ended; the process mark is cleared. A row that is gone stays gone.
  virtual Async<void> settle_run(RunEnd end) = 0;
  // At start: what earlier lives of the gateway have left unfinished becomes
  // "interrupted". Gives how many there were.
  virtual Async<std::int64_t> interrupt_runs(std::string instance_id, TimePoint at) = 0;

  // An open session without an agent yet. Errc::unavailable "pool_full",
  // Errc::over_quota "too_many_sessions".
  virtual Async<void> add_session(Session session, SessionLimits limits,
                                  std::string instance_id) = 0;
  // Its agent runs: what to load it by later, and the process. `created` comes with the
  // first start and goes into the audit. Errc::gone "session_closed" when the row is
  // closed or gone.
  virtual Async<void> note_agent(std::string id, std::string agent_session_id, ProcessMark process,
                                 std::string instance_id, std::optional<AuditEvent> created) = 0;
  // Its agent does not run any more.
  virtual Async<void> forget_process(std::string id) = 0;
  // Removes a session whose agent did not start. Nothing of it is left.
  virtual Async<void> drop_session(std::string id) = 0;
  // Closes it if it is open and, with `idle_since`, if nothing has happened in it after
  // that. Says whether it did. `event` goes into the audit if so.
  virtual Async<bool> close_session(std::string id, std::string reason, AuditEvent event,
                                    std::optional<TimePoint> idle_since) = 0;
  // A session whose row is gone stays gone, and nothing is written for it.
  virtual Async<void> write_session(SessionWrite write) = 0;
  // Deletes a closed session's journal, at most `blocks_max` rows of it, and with the last
  // of them its turns and its row; `event` goes into the audit then. Says whether all is gone.
  virtual Async<bool> delete_session(std::string id, AuditEvent event, std::int64_t blocks_max) = 0;
  // Removes journal rows written at or before `last`, at most `blocks_max`; gives how many.
  virtual Async<std::int64_t> trim_journal(TimePoint last, std::int64_t blocks_max) = 0;
  // Removes the oldest journal rows of sessions that have more than `bytes_max`, at most
  // `blocks_max` rows; gives how many.
  virtual Async<std::int64_t> trim_large_journals(std::int64_t bytes_max,
                                                  std::int64_t blocks_max) = 0;
  // Removes lines of the audit, and rows of runs that have ended, from at or before `last`,
  // the oldest first and at most `rows_max` of each; gives how many.
  virtual Async<std::int64_t> trim_audit(TimePoint last, std::int64_t rows_max) = 0;
  // At start, of earlier lives: the processes of runs that have not ended and of sessions,
  // at most `limit`.
  virtual Async<std::vector<ProcessMark>> left_processes(std::string instance_id,
                                                         std::int64_t limit) = 0;
  // At start, of earlier lives: turns that have not ended, at most `limit`.
  virtual Async<std::vector<UnfinishedTurn>> unfinished_turns(std::string instance_id,
                                                              std::int64_t limit) = 0;
  // At start: sessions whose creation was never answered are removed, and the others
  // have no process any more. Gives how many were removed.
  virtual Async<std::int64_t> adopt_sessions(std::string instance_id) = 0;

  virtual Async<void> add_upload(Upload upload) = 0;
  virtual Async<void> remove_uploads(std::vector<Digest> digests) = 0;
};

// What an error means that came from a write: false: nothing of it was kept.
inline bool may_be_kept(const Failure& failure) { return failure.cause == Cause::maybe_kept; }

}  // namespace clawdforge
