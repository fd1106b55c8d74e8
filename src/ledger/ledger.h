// The ledger is what survives a restart: rows by noun, over one worker. The io thread asks, a
// worker thread does: every call hops to the worker and back. A write is answered only after
// its commit; an answer that is an error means that nothing of the call was kept. Calls are
// done in the order in which they were awaited, so a caller reads its own earlier writes; pages of
// journals and lists are read beside them, and show what was answered before they were asked for. A
// call that has begun cannot be cancelled: it is answered later, and its coroutine goes on then.
//
// Errors of every call: Errc::unavailable, code "ledger_unavailable", when the queue
// is full, the disk is full, the file is locked by another program for too long,
// read-only, damaged, moved or gone; the detail says which. A write that the worker has in
// hand when it gets stuck is answered with "ledger_stalled": it may be kept or not, and
// a later call that undoes it is done after it. Only JournalRows::write() waits for the truth.
//
// A part of the gateway takes the rows of the nouns that it needs. Calls that only read are
// const: a part that may only read takes const rows.
//
// Owned by the daemon, used from the io thread; stop() or the destructor finishes what is
// queued and closes the database, and must come before the end of the io_context.
#pragma once

#include <memory>
#include <string>

#include "ledger/browsers/browser_rows.h"
#include "ledger/core/ledger_worker.h"
#include "ledger/hooks/delivery_rows.h"
#include "ledger/jobs/job_rows.h"
#include "ledger/keys/key_rows.h"
#include "ledger/rows/app_rows.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/rows/run_rows.h"
#include "ledger/rows/upload_rows.h"
#include "ledger/rows/worktree_rows.h"
#include "ledger/sessions/journal_rows.h"
#include "ledger/sessions/session_rows.h"
#include "ledger/usage/budget_rows.h"
#include "ledger/usage/usage_rows.h"

namespace clawdforge {

struct Ledger {
  // `self` is the id of this gateway process, new in every life: its rows carry it.
  Ledger(std::unique_ptr<SqlDriver> driver, InstanceId self, IoExecutor executor,
         LedgerWorkerOptions options, Log& log, Metrics& metrics,
         std::unique_ptr<SqlDriver> reader = nullptr);

  // A number that differs from the last one when another program has changed the ledger.
  // It may differ without a reason, too.
  Async<std::int64_t> foreign_change_mark();

  // False while the last write, or the last read, found the ledger unavailable. Io thread;
  // does not ask the worker. A queue that is full for a moment does not count.
  bool is_healthy() const { return worker.is_healthy(); }
  // Io thread, about once a second: answers the calls that wait for a worker that is stuck.
  void answer_stalled_calls() { worker.answer_stalled_calls(); }
  // Blocks until all calls made so far are done; calls made later are refused.
  void stop() { worker.stop(); }

  const InstanceId instance_id;
  LedgerWorker worker;  // before the rows, which use it
  AppRows apps;
  RunRows runs;
  SessionRows sessions;
  JournalRows journal;
  AuditRows audit;
  UploadRows uploads;
  InstanceRows instances;
  UsageRows usage;
  BudgetRows budgets;
  DeliveryRows deliveries;
  JobRows jobs;
  KeyRows keys;
  WorktreeRows worktrees;
  BrowserRows browsers;
};

}  // namespace clawdforge
