// What other programs see of sessions in the SQLite file, and what they may do to them there.
#include <set>

#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

TimePoint at_moment(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

class SqliteSessions : public ::testing::Test {
 protected:
  SqliteSessions() {
    EXPECT_TRUE(house_.open(dir_.file("l.db")));
    other_ = std::make_unique<OtherProgram>(dir_.file("l.db"));
  }

  template <class T>
  Result<T> await(Async<T> call) {
    return house_.await(std::move(call));
  }
  Ledger& ledger() { return *house_.ledger; }
  RowsOfAnother as(const std::string& instance_id) { return house_.as(instance_id); }
  void add(const std::string& id, const std::string& instance_id = "i1") {
    Session session;
    session.id = SessionId(id);
    session.app = AppName("a");
    session.agent = "demo";
    session.created_at = at_moment(100);
    ASSERT_TRUE(await(as(instance_id).sessions.add(session, {1'000, {}})));
  }
  static SessionWrite turn(const std::string& id, std::int64_t index, std::int64_t second) {
    SessionWrite write;
    write.session_id = SessionId(id);
    write.app = AppName("a");
    write.starts = {{index, at_moment(second)}};
    write.blocks = {{index * 10, index * 10 + 1, index, at_moment(second), "{\"id\":1}\n{}\n"}};
    write.ends = {{index, TurnState::failed, at_moment(second + 1), "error", "agent_failed",
                   Usage{1, 2, 3, 4}, 0.5}};
    write.audit = {{"turn", at_moment(second), "{\"turn_index\":1}"}};
    return write;
  }

  TempDir dir_;
  LedgerHouse house_;
  std::unique_ptr<OtherProgram> other_;
};

TEST_F(SqliteSessions, AreRowsAsTheContractHasThem) {
  Session session;
  session.id = SessionId("s1");
  session.app = AppName("a");
  session.agent = "demo";
  session.meta = "{\"k\":1}";
  session.created_at = at_moment(100);
  session.system = "be brief";
  ASSERT_TRUE(await(ledger().sessions.add(session, {10, {}})));
  const std::string row =
      "SELECT session_id, app_name, agent, model, meta, created_at, last_turn_at, closed_at, "
      "close_reason, turn_count, instance_id, agent_session_id, system, permission_mode, "
      "mcp_servers, process_pid, process_start, process_boot_id FROM sessions";
  EXPECT_EQ(other_->ask(row),
            "s1|a|demo|NULL|{\"k\":1}|100|NULL|NULL|NULL|0|i1|NULL|be brief|approve_reads|NULL|"
            "NULL|NULL|NULL");
  ASSERT_TRUE(
      await(as("i2").sessions.note_agent(SessionId("s1"), "agent-1", {4711, 99, "boot"},
                                         SessionCreated{{"create", at_moment(101), "{}"}})));
  const std::string mark =
      "SELECT instance_id, agent_session_id, process_pid, process_start, process_boot_id "
      "FROM sessions";
  EXPECT_EQ(other_->ask(mark), "i2|agent-1|4711|99|boot");
  ASSERT_TRUE(await(ledger().sessions.forget_process(SessionId("s1"))));
  EXPECT_EQ(other_->ask(mark), "i2|agent-1|NULL|NULL|NULL");
  ASSERT_TRUE(
      await(as("i2").sessions.note_agent(SessionId("s1"), "agent-1", {4711, 99, "boot"}, {})));
  ASSERT_TRUE(await(ledger().sessions.close(SessionId("s1"), CloseReason::closed,
                                            {"close", at_moment(200), "{\"by\":\"app\"}"}, {})));
  EXPECT_EQ(other_->ask(mark), "i2|agent-1|4711|99|boot") << "until the process is gone";
  EXPECT_EQ(other_->ask("SELECT closed_at, close_reason FROM sessions"), "200|closed");
  EXPECT_EQ(other_->ask("SELECT session_id, app_name, event, at, meta FROM session_events"),
            "s1|a|create|101|{}\ns1|a|close|200|{\"by\":\"app\"}");
}

TEST_F(SqliteSessions, TurnsAndJournalAreRowsToo) {
  add("s1");
  SessionWrite begun = turn("s1", 1, 200);
  begun.ends.clear();
  ASSERT_TRUE(await(ledger().journal.write(begun)));
  EXPECT_EQ(other_->ask("SELECT * FROM turns"),
            "s1|1|accepted|200|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|i1|NULL|NULL|0|NULL|NULL");
  ASSERT_TRUE(await(ledger().journal.write(turn("s1", 1, 210))));
  EXPECT_EQ(other_->ask("SELECT * FROM turns"),
            "s1|1|failed|200|211|error|agent_failed|1|2|3|4|0.5|i1|NULL|NULL|0|0|0");
  EXPECT_EQ(other_->ask("SELECT * FROM journal"), "s1|10|11|1|200|12|{\"id\":1}\n{}\n");
  EXPECT_EQ(other_->ask("SELECT last_event_id, journal_bytes, input_tokens, output_tokens, "
                        "cache_read_tokens, cache_write_tokens, cost_usd FROM sessions"),
            "11|12|1|2|3|4|0.5");
}

TEST_F(SqliteSessions, WhatAnotherProgramClosesRemovesOrDatesBackIsSeenSo) {
  for (const char* id : {"closed", "removed", "dated-back", "opened"}) add(id);
  ASSERT_TRUE(await(ledger().journal.write(turn("dated-back", 1, 500))));
  ASSERT_TRUE(await(ledger().sessions.close(SessionId("opened"), CloseReason::closed,
                                            {"close", at_moment(1), "{}"}, {})));
  other_->run("UPDATE sessions SET closed_at = 300 WHERE session_id = 'closed'");
  other_->run("DELETE FROM sessions WHERE session_id = 'removed'");
  other_->run("UPDATE sessions SET last_turn_at = 7 WHERE session_id = 'dated-back'");
  other_->run("UPDATE sessions SET closed_at = NULL WHERE session_id = 'opened'");
  using Ids = std::vector<std::string>;
  EXPECT_EQ(await(ledger().sessions.find(SessionId("closed"))).value().closed_at, at_moment(300));
  EXPECT_EQ(await(ledger().sessions.find(SessionId("removed"))).error().code, "session_not_found");
  EXPECT_EQ(
      texts_of(await(ledger().sessions.open_among({SessionId("closed"), SessionId("removed"),
                                                   SessionId("dated-back"), SessionId("opened")}))
                   .value()),
      (Ids{"dated-back", "opened"}));
  EXPECT_EQ(texts_of(await(ledger().sessions.closed(at_moment(300), 9)).value()), Ids{"closed"});
  const auto idle = await(ledger().sessions.idle(at_moment(50), 9)).value();
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(idle[0].id, "dated-back");
  EXPECT_EQ(await(ledger().sessions.note_agent(SessionId("closed"), "x", {}, {})).error().code,
            "session_closed");
  EXPECT_EQ(await(ledger().sessions.count_open()), 2);
  EXPECT_EQ(await(ledger().sessions.close(SessionId("dated-back"), CloseReason::idle,
                                          {"sweep_close", at_moment(600), {}}, at_moment(50))),
            true);
  // The next turn sets the time again.
  other_->run("UPDATE sessions SET last_turn_at = 9000 WHERE session_id = 'opened'");
  ASSERT_TRUE(await(ledger().journal.write(turn("opened", 1, 700))));
  EXPECT_EQ(await(ledger().sessions.find(SessionId("opened"))).value().last_turn_at,
            at_moment(701));
}

TEST_F(SqliteSessions, ASessionThatAnotherProgramRemovesLeavesNothingForGood) {
  add("s1");
  ASSERT_TRUE(await(ledger().journal.write(turn("s1", 1, 200))));
  SessionWrite begun = turn("s1", 2, 300);
  begun.ends.clear();
  ASSERT_TRUE(await(ledger().journal.write(begun)));
  other_->run("DELETE FROM sessions");
  ASSERT_TRUE(await(ledger().journal.write(turn("s1", 3, 400))));
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM turns"), "2");
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM journal"), "2");
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM session_events"), "2");
  EXPECT_TRUE(await(as("i9").journal.unfinished_turns(10)).value().empty());
  EXPECT_EQ(await(as("i9").sessions.adopt_left()), 0);
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM turns"), "0");
  EXPECT_EQ(await(ledger().journal.trim_old(at_moment(400), 1)), 1);
  EXPECT_EQ(await(ledger().sessions.remove_closed(SessionId("s1"),
                                                  {"hard_delete", at_moment(500), "{}"}, 10)),
            true);
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM journal"), "0");
  EXPECT_EQ(other_->ask("SELECT COUNT(*) FROM session_events"), "2")
      << "what was not there is not deleted";
}

TEST_F(SqliteSessions, DeletingLeavesTheAuditAlone) {
  add("s1");
  ASSERT_TRUE(await(ledger().journal.write(turn("s1", 1, 200))));
  ASSERT_TRUE(await(ledger().sessions.close(SessionId("s1"), CloseReason::closed,
                                            {"close", at_moment(300), "{}"}, {})));
  EXPECT_EQ(await(ledger().sessions.remove_closed(SessionId("s1"),
                                                  {"hard_delete", at_moment(400), "{}"}, 10)),
            true);
  for (const char* table : {"sessions", "turns", "journal"}) {
    EXPECT_EQ(other_->ask(std::string("SELECT COUNT(*) FROM ") + table), "0") << table;
  }
  EXPECT_EQ(other_->ask("SELECT app_name, event FROM session_events"),
            "a|turn\na|close\na|hard_delete");
}

TEST_F(SqliteSessions, ANewLifeOwnsWhatIsOpenAndKnowsOfNoProcess) {
  for (const char* id : {"open", "shut"}) {
    add(id);
    ASSERT_TRUE(await(ledger().sessions.note_agent(SessionId(id), "x", {4711, 99, "boot"}, {})));
  }
  other_->run("UPDATE sessions SET closed_at = 300 WHERE session_id = 'shut'");
  EXPECT_EQ(await(as("i2").sessions.adopt_left()), 0);
  EXPECT_EQ(other_->ask("SELECT session_id, instance_id, process_pid, process_start, "
                        "process_boot_id FROM sessions ORDER BY 1"),
            "open|i2|NULL|NULL|NULL\nshut|i1|NULL|NULL|NULL");
}

TEST_F(SqliteSessions, ASessionThatWasNeverAnsweredTakesItsEventsAlong) {
  for (const char* id : {"made", "unmade"}) {
    add(id);
    ASSERT_TRUE(await(ledger().journal.write(turn(id, 1, 200))));
  }
  ASSERT_TRUE(await(ledger().sessions.note_agent(SessionId("made"), "x", {4711, 99, "boot"}, {})));
  EXPECT_EQ(await(as("i2").sessions.adopt_left()), 1);
  for (const char* table : {"sessions", "turns", "journal"}) {
    EXPECT_EQ(other_->ask(std::string("SELECT session_id FROM ") + table), "made") << table;
  }
}

TEST_F(SqliteSessions, TheCountOfTheJournalFollowsWhatIsDeletedOfIt) {
  add("s1");
  for (std::int64_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(await(ledger().journal.write(turn("s1", i, 200 + i))));
  }
  ASSERT_TRUE(await(ledger().sessions.close(SessionId("s1"), CloseReason::closed,
                                            {"close", at_moment(300), "{}"}, {})));
  EXPECT_EQ(await(ledger().sessions.remove_closed(SessionId("s1"),
                                                  {"hard_delete", at_moment(400), "{}"}, 3)),
            false);
  EXPECT_EQ(other_->ask("SELECT journal_bytes FROM sessions"), "12");
}

TEST_F(SqliteSessions, TheCountOfTheJournalFollowsWhatIsTrimmed) {
  add("s1");
  for (std::int64_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(await(ledger().journal.write(turn("s1", i, 200 + i))));
  }
  const std::string bytes = "SELECT journal_bytes FROM sessions";
  EXPECT_EQ(other_->ask(bytes), "48");
  EXPECT_EQ(await(ledger().journal.trim_old(at_moment(202), 9)), 2);
  EXPECT_EQ(other_->ask(bytes), "24");
  EXPECT_EQ(await(ledger().journal.trim_large(12, 9)), 1);
  EXPECT_EQ(other_->ask(bytes), "12");
  other_->run("DELETE FROM journal");
  other_->run("UPDATE sessions SET journal_bytes = 5000");
  EXPECT_EQ(await(ledger().journal.trim_large(12, 9)), 0);
  EXPECT_EQ(other_->ask(bytes), "0") << "a wrong count heals itself";
}

// Hands everything on, and writes down which statements there were.
class NotingDriver final : public SqlDriver {
 public:
  NotingDriver(std::unique_ptr<SqlDriver> driver, std::set<std::string>& statements)
      : driver_(std::move(driver)), statements_(statements) {}

  using SqlDriver::execute;
  Result<SqlResult> execute(std::string_view statement, std::span<const SqlValue> params) override {
    statements_.emplace(statement);
    return driver_->execute(statement, params);
  }
  Result<void> run_script(std::string_view script) override { return driver_->run_script(script); }
  std::string_view auto_id_type() const override { return driver_->auto_id_type(); }
  Result<void> begin(Access access) override { return driver_->begin(access); }
  Result<void> commit() override { return driver_->commit(); }
  void rollback() override { driver_->rollback(); }
  Result<std::int64_t> change_mark() override { return driver_->change_mark(); }
  Result<void> tidy(Moment moment) override { return driver_->tidy(moment); }

 private:
  std::unique_ptr<SqlDriver> driver_;
  std::set<std::string>& statements_;
};

TEST_F(SqliteSessions, NoCallOfTheRunningGatewayWalksThroughAWholeTable) {
  std::set<std::string> statements;
  auto driver = SqliteDriver::open(dir_.file("l.db"), {});
  ASSERT_TRUE(driver);
  house_.ledger = std::make_unique<Ledger>(
      std::make_unique<NotingDriver>(std::move(*driver), statements), InstanceId("i1"),
      house_.io.get_executor(), LedgerWorkerOptions{}, house_.log, house_.metrics);
  add("s1");
  ASSERT_TRUE(await(ledger().sessions.note_agent(SessionId("s1"), "x", {}, {})));
  ASSERT_TRUE(await(ledger().journal.write(turn("s1", 1, 200))));
  ASSERT_TRUE(await(ledger().sessions.forget_process(SessionId("s1"))));
  ASSERT_TRUE(await(ledger().sessions.find(SessionId("s1"))));
  for (const auto& app : {std::optional(AppName("a")), std::optional<AppName>()}) {
    for (const bool includes_closed : {false, true}) {
      SessionFilter filter;
      filter.audit.app = app;
      filter.includes_closed = includes_closed;
      ASSERT_TRUE(await(ledger().sessions.page(filter)));
      ASSERT_TRUE(await(ledger().audit.page(filter.audit)));
    }
  }
  ASSERT_TRUE(await(ledger().sessions.open_among({SessionId("s1")})));
  ASSERT_TRUE(await(ledger().sessions.count_open()));
  ASSERT_TRUE(await(ledger().sessions.idle(at_moment(1), 9)));
  ASSERT_TRUE(await(ledger().sessions.closed(at_moment(1), 9)));
  ASSERT_TRUE(await(as("i9").journal.unfinished_turns(9)));
  ASSERT_TRUE(await(ledger().journal.trim_old(at_moment(1), 9)));
  other_->run("UPDATE sessions SET journal_bytes = 9000000");
  ASSERT_TRUE(await(ledger().journal.trim_large(2'000'000, 9)));
  ASSERT_TRUE(await(ledger().sessions.close(SessionId("s1"), CloseReason::idle, {"close", {}, "{}"},
                                            at_moment(999))));
  ASSERT_TRUE(await(
      ledger().sessions.close(SessionId("s1"), CloseReason::closed, {"close", {}, "{}"}, {})));
  ASSERT_TRUE(
      await(ledger().sessions.remove_closed(SessionId("s1"), {"hard_delete", {}, "{}"}, 9)));
  ASSERT_TRUE(await(ledger().sessions.drop(SessionId("s1"))));
  house_.ledger.reset();

  EXPECT_GT(statements.size(), 25u);
  for (const std::string& statement : statements) {
    std::istringstream plan(other_->ask("EXPLAIN QUERY PLAN " + statement));
    for (std::string line; std::getline(plan, line);) {
      // What is open or unfinished is little, and has an index of its own.
      const bool walks = line.find("SCAN ") != line.npos &&
                         line.find("INDEX sessions_open") == line.npos &&
                         line.find("INDEX turns_unfinished") == line.npos;
      EXPECT_FALSE(walks) << statement << ": " << line;
    }
  }
}

}  // namespace
}  // namespace clawdforge
