// SqlLedger is the Ledger on a SQL database. Owned by the daemon, used from the io
// thread; stop() or the destructor finishes what is queued and closes the database, and
// must come before the end of the io_context.
#pragma once

#include <memory>
#include <string>

#include "ledger/core/ledger_worker.h"
#include "ledger/rows/ledger.h"
#include "ledger/sqlite/sqlite_driver.h"

namespace clawdforge {

class SqlLedger final : public Ledger {
 public:
  SqlLedger(std::unique_ptr<SqlDriver> driver, IoExecutor executor, LedgerWorkerOptions options,
            Log& log, Metrics& metrics)
      : worker_(std::move(driver), executor, options, log, metrics) {}

  Async<AppList> apps() override;
  Async<std::int64_t> open_session_count() override;
  Async<RunPage> runs(AuditFilter filter) override;
  Async<std::vector<Upload>> find_uploads(std::string app, std::vector<Digest> digests,
                                          TimePoint now) override;
  Async<std::vector<Digest>> expired_uploads(TimePoint now, std::int64_t limit) override;
  Async<std::vector<Digest>> all_uploads() override;
  Async<Session> find_session(std::string id) override;
  Async<Session> load_session(std::string id) override;
  Async<SessionPage> sessions(SessionFilter filter) override;
  Async<AuditPage> session_events(AuditFilter filter) override;
  Async<std::vector<std::string>> open_among(std::vector<std::string> ids) override;
  Async<std::vector<Session>> idle_sessions(TimePoint last, std::int64_t limit) override;
  Async<std::vector<std::string>> closed_sessions(TimePoint last, std::int64_t limit) override;
  Async<std::vector<std::string>> all_session_ids() override;
  Async<std::vector<JournalBlock>> journal(std::string session_id, std::int64_t after,
                                           std::size_t bytes_max) override;
  Async<std::int64_t> foreign_change_mark() override;
  bool is_healthy() const override { return worker_.is_healthy(); }
  void answer_stalled_calls() override { worker_.answer_stalled_calls(); }

  Async<void> begin_instance(Instance instance) override;
  Async<void> end_instance(std::string id, TimePoint at) override;
  Async<void> beat(std::string instance_id, TimePoint at) override;

  Async<void> add_app(App app) override;
  Async<void> rotate_app(std::string name, Digest token_digest) override;
  Async<void> remove_app(std::string name, TimePoint at) override;
  Async<void> note_use(std::vector<AppUse> uses) override;

  Async<void> add_run(Run run, ProcessMark process) override;
  Async<void> settle_run(RunEnd end) override;
  Async<std::int64_t> interrupt_runs(std::string instance_id, TimePoint at) override;

  Async<void> add_session(Session session, SessionLimits limits, std::string instance_id) override;
  Async<void> note_agent(std::string id, std::string agent_session_id, ProcessMark process,
                         std::string instance_id, std::optional<AuditEvent> created) override;
  Async<void> forget_process(std::string id) override;
  Async<void> drop_session(std::string id) override;
  Async<bool> close_session(std::string id, std::string reason, AuditEvent event,
                            std::optional<TimePoint> idle_since) override;
  Async<void> write_session(SessionWrite write) override;
  Async<bool> delete_session(std::string id, AuditEvent event, std::int64_t blocks_max) override;
  Async<std::int64_t> trim_journal(TimePoint last, std::int64_t blocks_max) override;
  Async<std::int64_t> trim_large_journals(std::int64_t bytes_max, std::int64_t blocks_max) override;
  Async<std::int64_t> trim_audit(TimePoint last, std::int64_t rows_max) override;
  Async<std::vector<ProcessMark>> left_processes(std::string instance_id,
                                                 std::int64_t limit) override;
  Async<std::vector<UnfinishedTurn>> unfinished_turns(std::string instance_id,
                                                      std::int64_t limit) override;
  Async<std::int64_t> adopt_sessions(std::string instance_id) override;

  Async<void> add_upload(Upload upload) override;
  Async<void> remove_uploads(std::vector<Digest> digests) override;

  // Blocks until all calls made so far are done; calls made later are refused.
  void stop() { worker_.stop(); }

 private:
  Async<Session> read_session(std::string id, bool is_whole);

  LedgerWorker worker_;
};

struct LedgerOptions {
  SqliteOptions sqlite;
  LedgerWorkerOptions worker;
};

// Opens and migrates the database behind "sqlite:PATH" or "sqlite::memory:". Blocks: for
// the start of the program. The error's message is one sentence for the operator.
Result<std::unique_ptr<SqlLedger>> open_ledger(IoExecutor executor, std::string url, Log& log,
                                               Metrics& metrics, LedgerOptions options = {});

}  // namespace clawdforge
