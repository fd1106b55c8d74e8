// The ledger is what survives a restart. The io thread asks, a worker thread does:
// every call hops to the worker and back. A write is answered only after its commit;
// an answer that is an error means that nothing of the call was kept. Calls are done in
// the order in which they were awaited, so a caller reads its own earlier writes. A call
// that has begun cannot be cancelled: it is answered later, and its coroutine goes on then.
//
// Errors of every call: Errc::unavailable, code "ledger_unavailable", when the queue
// is full, the disk is full, the file is locked by another program for too long,
// read-only, damaged, moved or gone; the detail says which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/clock.h"
#include "model/app.h"
#include "model/run.h"
#include "model/upload.h"

namespace clawdforge {

struct Instance {
  std::string id;  // of this gateway process; rows it owns carry it
  std::string version;
  std::int64_t pid = 0;
  TimePoint started_at;
};

struct AppUse {
  std::string name;
  TimePoint last_used_at;
};

// An app's row that another program has written and that cannot be understood.
struct UnreadableApp {
  std::string name;
  std::string reason;
};

// The unreadable ones are left out of `apps`, so they have no access: a range that was
// mistyped must not open the door to every address. They are told to the operator.
struct AppList {
  std::vector<App> apps;  // by name
  std::vector<UnreadableApp> unreadable;
};

// Which rows of an audit to show, newest first. Times are inclusive.
struct AuditFilter {
  std::optional<std::string> app;
  std::optional<TimePoint> since;
  std::optional<TimePoint> until;
  std::int64_t limit = 100;
  std::optional<std::string> cursor;  // a page's next_cursor, to go on behind it
};

struct RunPage {
  std::vector<RunRecord> runs;
  std::optional<std::string> next_cursor;  // none: that was all
};

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
  // A number that differs from the last one when another program has changed the ledger.
  // It may differ without a reason, too.
  virtual Async<std::int64_t> foreign_change_mark() = 0;

  // False while the last write, or the last read, found the ledger unavailable. Io thread;
  // does not ask the worker. A queue that is full for a moment is no illness.
  virtual bool is_healthy() const = 0;
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

  virtual Async<void> add_upload(Upload upload) = 0;
  virtual Async<void> remove_uploads(std::vector<Digest> digests) = 0;
};

}  // namespace clawdforge
