#include "offline/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

using Names = std::vector<std::string>;

TimePoint at_second(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

// Events of one turn, the last of which closes it.
JournalBlock block_of(std::int64_t first, std::int64_t last, std::int64_t turn, EventKind closing) {
  JournalBlock block{.first_event_id = first,
                     .last_event_id = last,
                     .turn_index = turn,
                     .at = at_second(200 + turn),
                     .lines = {}};
  for (std::int64_t id = first; id <= last; ++id) {
    append_event_line(block.lines, Event{.id = id,
                                         .turn_index = turn,
                                         .kind = id == last ? closing : EventKind::update,
                                         .json = "{\"text\":\"h\u00e9\"}"});
  }
  return block;
}

struct Broken {
  std::string sql;
  Names found;
};

// A ledger with something of everything: "s1" is open and has three turns, the last of them
// under way; "s2" is closed; there is a run of each state.
class Verify : public ::testing::Test {
 protected:
  void SetUp() override {
    LedgerHouse house;
    ASSERT_TRUE(house.open(path_, {}, "here"));
    Ledger& ledger = *house.ledger;
    const auto done = [&](auto call) { ASSERT_TRUE(house.await(std::move(call))); };
    done(InstanceRows(ledger.worker, InstanceId("gone")).begin("1", 1, at_second(50)));
    done(ledger.instances.begin("1", 2, at_second(100)));
    done(ledger.apps.add(app_named("a")));
    for (const char* id : {"s1", "s2"}) {
      Session session;
      session.id = SessionId(id);
      session.app = AppName("a");
      session.agent = "demo";
      session.created_at = at_second(100);
      done(ledger.sessions.add(session, {100, {}}));
      done(ledger.sessions.note_agent(SessionId(id), "agent-1", {4711, 9, "boot"},
                                      SessionCreated{{"create", at_second(101), "{}"}}));
      SessionWrite write{.session_id = SessionId(id),
                         .app = AppName("a"),
                         .starts = {},
                         .blocks = {},
                         .ends = {},
                         .audit = {}};
      write.starts = {{1, at_second(201)}, {2, at_second(202)}};
      write.blocks = {block_of(1, 3, 1, EventKind::done), block_of(4, 6, 2, EventKind::failed)};
      write.ends = {
          {1, TurnState::done, at_second(205), "end_turn", {}, Usage{1, 2, 3, 4}, 0.1},
          {2, TurnState::failed, at_second(206), "error", "agent_failed", Usage{5, 6, 7, 8}, 0.2}};
      write.audit = {{"turn", at_second(205), "{}"}, {"turn", at_second(206), "{}"}};
      done(ledger.journal.write(write));
    }
    SessionWrite more{.session_id = SessionId("s1"),
                      .app = AppName("a"),
                      .starts = {},
                      .blocks = {},
                      .ends = {},
                      .audit = {}};
    more.starts = {{3, at_second(203)}};
    more.blocks = {block_of(7, 8, 3, EventKind::update)};
    done(ledger.journal.write(more));
    done(ledger.sessions.close(SessionId("s2"), CloseReason::closed,
                               {"close", at_second(300), "{}"}, {}));
    for (const char* id : {"r1", "r2"}) {
      struct Run run{RunId(id), AppName("a"), "demo", "", 3, at_second(200), InstanceId("here")};
      done(ledger.runs.add(run, {4712, 9, "boot"}));
    }
    RunEnd end;
    end.run_id = RunId("r1");
    end.state = RunState::succeeded;
    end.outcome = "ok";
    end.ended_at = at_second(210);
    done(ledger.runs.settle(end));
    done(ledger.uploads.add({sha256("file"), AppName("a"), 3, ".txt", at_second(1), at_second(999),
                             InstanceId("here")}));
    add_asks(house);
  }

  // "j1" has succeeded and its webhook waits, "j2" runs, "j3" is queued; a key is answered and one
  // is under way; "d1" is delivered.
  static void add_asks(LedgerHouse& house) {
    Ledger& ledger = *house.ledger;
    const auto done = [&](auto call) { ASSERT_TRUE(house.await(std::move(call))); };
    for (const char* id : {"j1", "j2", "j3"}) {
      Job job;
      job.id = JobId(id);
      job.app = AppName("a");
      job.meta = "{}";
      job.webhook = "http://127.0.0.1:9/";
      job.created_at = job.ready_at = at_second(200);
      done(ledger.jobs.add(job, "{}", {.queued_max_per_app = 9}));
      if (job.id != JobId("j3")) done(ledger.jobs.begin(job, at_second(201)));
    }
    done(ledger.jobs.end({.id = JobId("j1"),
                          .app = AppName("a"),
                          .state = JobState::succeeded,
                          .ended_at = at_second(202),
                          .status = 200,
                          .answer = "{}",
                          .answer_bytes = 2}));
    for (const char* name : {"answered", "begun"}) {
      KeyHold hold{.key = {.digest = sha256(name),
                           .fingerprint = sha256("body"),
                           .app = AppName("a"),
                           .request_id = "q",
                           .begun_at = at_second(200),
                           .instance_id = InstanceId("here")}};
      if (name == std::string_view("begun")) {
        struct Run run{RunId("r3"),    AppName("a"),      "demo", "", 3,
                       at_second(200), InstanceId("here")};
        run.key = hold.begin();
        done(ledger.runs.add(run, {4713, 9, "boot"}));
      } else {
        done(ledger.keys.write(hold.keep({.body = "{}"}, at_second(201))));
      }
    }
    done(ledger.deliveries.add({.id = DeliveryId("d1"),
                                .app = AppName("a"),
                                .url = "http://127.0.0.1:9/",
                                .type = "session.permission_asked",
                                .body = std::make_shared<const std::string>("{}"),
                                .at = at_second(200)}));
    done(ledger.deliveries.note(DeliveryId("d1"),
                                {.status = 204, .error = "", .at = at_second(201)}, std::nullopt));
    ReservationRequest request{.id = "ask",
                               .app = AppName("a"),
                               .now = at_second(200),
                               .estimate = {.asks = 1},
                               .of_app = {{BudgetWindow::day, BudgetUnit::asks, 10}},
                               .of_gateway = {}};
    done(ledger.budgets.reserve(request));
  }

  void change(const std::string& sql) { OtherProgram(path_).run(sql); }

  Findings verified(const std::set<std::string>& owners = {"here"}) {
    Findings findings;
    auto driver = SqliteDriver::open_to_read(path_, {});
    EXPECT_TRUE(driver) << driver.error().message;
    EXPECT_TRUE((*driver)->begin(Access::read));
    EXPECT_TRUE(check_schema(**driver, path_));
    EXPECT_EQ((*driver)->damage(1), Names{});
    EXPECT_TRUE(verify_rows(**driver, owners, findings));
    EXPECT_TRUE(verify_journals(**driver, findings));
    return findings;
  }

  Names names(const std::set<std::string>& owners = {"here"}) {
    Names names;
    for (const Finding& finding : verified(owners).all()) names.emplace_back(finding.check.name);
    std::ranges::sort(names);
    return names;
  }

  // In a copy: the next one is about a sound ledger again.
  void expect_found(const Broken& broken) {
    const std::string kept = dir_.file("kept.db");
    std::filesystem::copy_file(path_, kept);
    change(broken.sql);
    if (broken.sql.find("replace(") != std::string::npos) {
      // A text of another length would be another finding.
      change(
          "UPDATE journal SET bytes = length(CAST(events AS BLOB)); UPDATE sessions SET "
          "journal_bytes = (SELECT SUM(bytes) FROM journal "
          "WHERE journal.session_id = sessions.session_id)");
    }
    EXPECT_EQ(names(), broken.found) << broken.sql;
    std::filesystem::rename(kept, path_);
  }

  TempDir dir_;
  const std::string path_ = dir_.file("l.db");
};

TEST_F(Verify, FindsNothingInASoundLedger) {
  EXPECT_EQ(names(), Names{});
  EXPECT_GE(verified().checks(), 35);
}

TEST_F(Verify, FindsWorkWhoseGatewayIsGone) {
  EXPECT_EQ(names({"another"}),
            (Names{"job-owner", "key-owner", "run-owner", "session-owner", "turn-owner"}));
  change("UPDATE turns SET instance_id = NULL WHERE ended_at IS NULL");
  EXPECT_EQ(names(), Names{"turn-owner"});
}

TEST_F(Verify, FindsEachBrokenPromiseByItsName) {
  const std::vector<Broken> all = {
      {"UPDATE tokens SET ip_cidrs = 'nonsense'", {"token-row"}},
      {"UPDATE sessions SET created_at = 'soon' WHERE session_id = 's1'", {"session-times"}},
      {"UPDATE sessions SET closed_at = NULL WHERE session_id = 's2'", {"session-closed"}},
      {"UPDATE sessions SET process_pid = NULL WHERE session_id = 's2'", {"session-process"}},
      {"UPDATE sessions SET turn_count = 4 WHERE session_id = 's1'", {"session-turns"}},
      {"UPDATE sessions SET output_tokens = output_tokens + 1", {"session-usage"}},
      {"UPDATE sessions SET cost_usd = 0.31 WHERE session_id = 's2'", {"session-cost"}},
      {"UPDATE sessions SET cost_usd = NULL WHERE session_id = 's2'", {"session-cost"}},
      {"UPDATE sessions SET journal_bytes = journal_bytes - 1", {"session-journal-bytes"}},
      {"UPDATE sessions SET last_event_id = 9 WHERE session_id = 's1'", {"session-last-event"}},
      {"DELETE FROM sessions WHERE session_id = 's2'", {"journal-session", "turn-session"}},
      {"UPDATE turns SET state = 'odd' WHERE session_id = 's2' AND turn_index = 1", {"turn-state"}},
      {"UPDATE turns SET ended_at = NULL WHERE session_id = 's2' AND turn_index = 1",
       {"turn-closed-early", "turn-end"}},
      {"UPDATE turns SET state = 'done', code = NULL WHERE session_id = 's2' AND turn_index = 2",
       {"turn-closing"}},
      {"UPDATE turns SET code = 'x' WHERE session_id = 's2' AND turn_index = 1", {"turn-end"}},
      {"UPDATE runs SET state = 'odd', outcome = 'x' WHERE run_id = 'r1'", {"run-state"}},
      {"UPDATE runs SET state = 'running' WHERE run_id = 'r1'", {"run-end"}},
      {"UPDATE runs SET outcome = 'timeout' WHERE run_id = 'r1'", {"run-end"}},
      {"UPDATE uploads SET file_token_sha256 = 'XYZ'", {"upload-row"}},
      {"UPDATE session_events SET event = 'odd' WHERE event_id = 1", {"audit-row"}},
      {"UPDATE journal SET turn_index = 7 WHERE session_id = 's1' AND first_event_id = 7",
       {"journal-block", "journal-turn"}},
      {"UPDATE journal SET bytes = bytes + 1 WHERE session_id = 's1' AND first_event_id = 7; "
       "UPDATE sessions SET journal_bytes = journal_bytes + 1 WHERE session_id = 's1'",
       {"journal-block"}},
      {"UPDATE journal SET last_event_id = 9 WHERE session_id = 's1' AND first_event_id = 7; "
       "UPDATE sessions SET last_event_id = 9 WHERE session_id = 's1'",
       {"journal-block"}},
      {"UPDATE journal SET events = replace(events, '{\"text\"', '{\"text:')", {"journal-event"}},
      {"UPDATE journal SET events = replace(events, '\"event\":\"done\"', "
       "'\"event\":\"note\"') WHERE session_id = 's2'",
       {"journal-block", "turn-unclosed"}},
      {"UPDATE journal SET events = replace(events, '\"event\":\"update\"', "
       "'\"event\":\"failed\"') WHERE session_id = 's2' AND first_event_id = 4",
       {"turn-closed-twice"}},
      {"UPDATE sessions SET input_tokens = 9223372036854775807; "
       "UPDATE turns SET input_tokens = 9223372036854775807 WHERE session_id = 's1'",
       {"session-usage"}},
  };
  for (const Broken& broken : all) expect_found(broken);
}

TEST_F(Verify, FindsWhatIsWrongWithJobsKeysAndDeliveries) {
  const std::vector<Broken> all = {
      {"UPDATE jobs SET state = 'odd' WHERE job_id = 'j3'", {"job-end", "job-row"}},
      {"UPDATE jobs SET kind = 'turn' WHERE job_id = 'j3'", {"job-row"}},
      {"UPDATE jobs SET attempts = 2 WHERE job_id = 'j2'", {"job-row"}},
      {"UPDATE jobs SET ready_at = 'soon' WHERE job_id = 'j3'", {"job-row"}},
      {"UPDATE jobs SET ended_at = 300 WHERE job_id = 'j3'", {"job-end"}},
      {"UPDATE jobs SET body = NULL WHERE job_id = 'j3'", {"job-end"}},
      {"UPDATE jobs SET started_at = NULL WHERE job_id = 'j2'", {"job-end"}},
      {"UPDATE jobs SET status = 502 WHERE job_id = 'j1'", {"job-end"}},
      {"UPDATE jobs SET answer = NULL WHERE job_id = 'j1'", {"job-answer"}},
      {"UPDATE jobs SET answer = '{\"ok\":true}' WHERE job_id = 'j1'", {"job-answer"}},
      {"UPDATE jobs SET is_in_file = 1 WHERE job_id = 'j1'", {"job-answer"}},
      {"UPDATE jobs SET state = 'failed', status = 502 WHERE job_id = 'j1'", {"job-delivery"}},
      {"UPDATE jobs SET state = 'running', ended_at = NULL, body = '{}' WHERE job_id = 'j1'",
       {"job-delivery"}},
      {"UPDATE jobs SET instance_id = 'gone' WHERE job_id = 'j2'", {"job-owner"}},
      {"UPDATE idempotency_keys SET key_sha256 = 'XYZ' WHERE ended_at IS NULL", {"key-row"}},
      {"UPDATE idempotency_keys SET status = 99 WHERE ended_at IS NOT NULL", {"key-row"}},
      {"UPDATE idempotency_keys SET body = NULL WHERE ended_at IS NOT NULL", {"key-answer"}},
      {"UPDATE idempotency_keys SET body = '{\"ok\":true}' WHERE ended_at IS NOT NULL",
       {"key-answer"}},
      {"UPDATE idempotency_keys SET ended_at = NULL", {"key-answer"}},
      {"UPDATE idempotency_keys SET instance_id = NULL", {"key-owner"}},
      {"UPDATE deliveries SET state = 'odd' WHERE delivery_id = 'd1'", {"delivery-row"}},
      {"UPDATE deliveries SET body = NULL WHERE delivery_id = 'j1'", {"delivery-row"}},
      {"UPDATE deliveries SET ended_at = 300 WHERE delivery_id = 'j1'", {"delivery-row"}},
      {"UPDATE deliveries SET due_ms = 'soon' WHERE delivery_id = 'j1'", {"delivery-row"}},
      {"UPDATE deliveries SET last_status = 500 WHERE delivery_id = 'd1'", {"delivery-end"}},
      {"UPDATE deliveries SET body = '{}' WHERE delivery_id = 'd1'", {"delivery-end"}},
      {"UPDATE deliveries SET state = 'dead' WHERE delivery_id = 'd1'", {"delivery-end"}},
      {"INSERT INTO usage_minutes (at, app_name, agent, model, kind, asks) "
       "VALUES (180, 'a', 'demo', '', 'run', 1)",
       {"budget-window"}},
  };
  for (const Broken& broken : all) expect_found(broken);
}

TEST_F(Verify, MissesNothingThatRetentionTookFromTheHead) {
  const std::string less =
      "DELETE FROM journal WHERE session_id = 's1' AND first_event_id = {}; UPDATE sessions SET "
      "journal_bytes = (SELECT SUM(bytes) FROM journal "
      "WHERE journal.session_id = sessions.session_id)";
  change(fmt::format(fmt::runtime(less), 1));
  EXPECT_EQ(names(), Names{}) << "retention takes the oldest";
  change(fmt::format(fmt::runtime(less), 4));
  EXPECT_EQ(names(), Names{});
}

TEST_F(Verify, FindsAHoleInTheMiddleOfAJournal) {
  change(
      "DELETE FROM journal WHERE session_id = 's1' AND first_event_id = 4; UPDATE sessions SET "
      "journal_bytes = (SELECT SUM(bytes) FROM journal "
      "WHERE journal.session_id = sessions.session_id)");
  EXPECT_EQ(names(), (Names{"journal-hole", "turn-unclosed"}));
}

TEST_F(Verify, FindsSeveralThingsAndNamesAFewExamplesOfEach) {
  change("UPDATE sessions SET turn_count = 9 WHERE session_id = 's1'");
  for (int i = 0; i < 9; ++i) {
    change(
        fmt::format("INSERT INTO runs (run_id, app_name, agent, state, started_at) "
                    "VALUES ('x{}', 'a', 'demo', 'odd', 1)",
                    i));
  }
  EXPECT_EQ(names(), (Names{"run-end", "run-owner", "run-state", "session-turns"}));
  for (const Finding& finding : verified().all()) {
    if (finding.check.name == "session-turns") {
      EXPECT_EQ(line_of(finding),
                "finding session-turns: a session's count of turns is not that of its turns (s1)");
    } else {
      EXPECT_EQ(finding.count, 9) << finding.check.name;
      EXPECT_TRUE(line_of(finding).ends_with(" (x0, x1, x2, x3, x4 and 4 more)"))
          << line_of(finding);
    }
  }
}

TEST_F(Verify, PrintsWhatAnotherProgramWroteOnOneLine) {
  Finding finding{{"name", "a sentence"}, 1, {"a\nb\x1b[2J\xc3"}};
  EXPECT_EQ(line_of(finding), "finding name: a sentence (a\\x0ab\\x1b[2J\\xc3)");
}

TEST_F(Verify, ReadsMoreSessionsTurnsAndBlocksThanOnePageHolds) {
  change(
      "WITH RECURSIVE n(i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM n WHERE i < 1300) "
      "INSERT INTO journal SELECT 's1', i, i, 0, 300, 40, '' FROM n; "
      "UPDATE journal SET events = '{\"id\":' || first_event_id || "
      "',\"turn_index\":0,\"event\":\"update\",\"data\":{}}' || char(10) WHERE at = 300; "
      "UPDATE journal SET bytes = length(events) WHERE at = 300; "
      "UPDATE sessions SET last_event_id = 1300, journal_bytes = (SELECT SUM(bytes) FROM "
      "journal WHERE journal.session_id = 's1') WHERE session_id = 's1'; "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1300) "
      "INSERT INTO sessions (session_id, app_name, agent, created_at) "
      "SELECT 't' || i, 'a', 'demo', 1 FROM n");
  EXPECT_EQ(names(), Names{});
  change(
      "DELETE FROM journal WHERE session_id = 's1' AND first_event_id = 1200; "
      "UPDATE sessions SET journal_bytes = (SELECT SUM(bytes) FROM journal WHERE "
      "journal.session_id = 's1') WHERE session_id = 's1'; "
      "UPDATE journal SET session_id = 't999', first_event_id = 1 WHERE first_event_id = 1299");
  const Names found = names();
  EXPECT_EQ(std::ranges::count(found, "journal-hole"), 1);
  EXPECT_EQ(std::ranges::count(found, "journal-block"), 1);
}

TEST_F(Verify, RefusesASchemaItDoesNotKnow) {
  change("INSERT INTO schema_migrations VALUES (99, 'x', 1)");
  auto driver = SqliteDriver::open_to_read(path_, {});
  ASSERT_TRUE(driver);
  const auto known = check_schema(**driver, "L");
  ASSERT_FALSE(known);
  EXPECT_TRUE(known.error().message.starts_with("The ledger L has schema 99"));
  change("DELETE FROM schema_migrations WHERE number > 1");
  EXPECT_FALSE(check_schema(**driver, "L"));
}

TEST_F(Verify, OpensWhatIsThereAndChangesNothing) {
  auto driver = SqliteDriver::open_to_read(path_, {});
  ASSERT_TRUE(driver);
  EXPECT_FALSE((*driver)->execute("DELETE FROM runs"));
  EXPECT_FALSE(SqliteDriver::open_to_read(dir_.file("none.db"), {}));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none.db")));
  EXPECT_FALSE(SqliteDriver::open_to_read(dir_.path(), {}));
  OtherProgram(dir_.file("other.db")).run("CREATE TABLE t (x)");
  const auto other = SqliteDriver::open_to_read(dir_.file("other.db"), {});
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().message.ends_with("is not a ledger of clawdforge."));
}

}  // namespace
}  // namespace clawdforge
