// Every promise of Ledger, on every database there is a driver for.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "base/async/task_group.h"
#include "ledger/ledger_contract_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Databases, LedgerContract, databases(), name_of_database);

TEST_P(LedgerContract, AnAppIsReadBackAsItWasAdded) {
  open();
  App app = app_named("news-bot_1");
  app.ip_cidrs = {Cidr::parse("10.0.0.0/8").value(), Cidr::parse("2001:db8::/32").value()};
  app.event_format = EventFormat::simple;
  app.sessions_max = 3;
  app.runs_max = 0;
  app.created_at = at_second(1'700'000'000) + 999ms;
  app.last_used_at = at_second(1'700'000'100);
  ASSERT_TRUE(await(ledger().apps.add(app)));

  const auto list = await(ledger().apps.list());
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->unreadable.empty());
  ASSERT_EQ(list->apps.size(), 1u);
  const App& read = list->apps[0];
  EXPECT_EQ(read.name, app.name);
  EXPECT_EQ(read.token_digest, app.token_digest);
  EXPECT_EQ(read.ip_cidrs, app.ip_cidrs);
  EXPECT_EQ(read.event_format, app.event_format);
  EXPECT_EQ(read.sessions_max, app.sessions_max);
  EXPECT_EQ(read.runs_max, app.runs_max);
  EXPECT_EQ(read.created_at, at_second(1'700'000'000)) << "times are kept to the second";
  EXPECT_EQ(read.last_used_at, app.last_used_at);
}

TEST_P(LedgerContract, AnAppNeedsNothingOptional) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("plain"))));
  const App read = apps().at(0);
  EXPECT_TRUE(read.ip_cidrs.empty());
  EXPECT_FALSE(read.event_format);
  EXPECT_FALSE(read.sessions_max);
  EXPECT_FALSE(read.runs_max);
  EXPECT_FALSE(read.last_used_at);
}

TEST_P(LedgerContract, AppsComeByNameInTheOrderOfTheirBytes) {
  open();
  for (const char* name : {"b", "a_", "a-", "a1", "ab"}) {
    ASSERT_TRUE(await(ledger().apps.add(app_named(name))));
  }
  std::vector<std::string> names;
  for (const App& app : apps()) names.push_back(app.name.str());
  EXPECT_EQ(names, (std::vector<std::string>{"a-", "a1", "a_", "ab", "b"}));
}

TEST_P(LedgerContract, ANameIsTakenOnlyOnce) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  App second = app_named("a");
  second.token_digest = sha256("another");
  const auto added = await(ledger().apps.add(second));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, Errc::conflict);
  EXPECT_EQ(added.error().code, "name_taken");
  EXPECT_EQ(apps().at(0).token_digest, sha256("a"));
  EXPECT_TRUE(ledger().is_healthy()) << "a refusal does not mean that the ledger fails";
}

TEST_P(LedgerContract, ATokenBelongsToOneAppOnly) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  App thief = app_named("b");
  thief.token_digest = sha256("a");
  EXPECT_FALSE(await(ledger().apps.add(thief)));
  ASSERT_TRUE(await(ledger().apps.add(app_named("c"))));
  EXPECT_FALSE(await(ledger().apps.rotate(AppName("c"), sha256("a"))));
  ASSERT_EQ(apps().size(), 2u);
  EXPECT_EQ(apps().at(1).token_digest, sha256("c"));
}

TEST_P(LedgerContract, RotatingChangesTheTokenAndNothingElse) {
  open();
  App app = app_named("a");
  app.sessions_max = 7;
  ASSERT_TRUE(await(ledger().apps.add(app)));
  ASSERT_TRUE(await(ledger().apps.rotate(AppName("a"), sha256("new"))));
  EXPECT_EQ(apps().at(0).token_digest, sha256("new"));
  EXPECT_EQ(apps().at(0).sessions_max, 7);

  const auto rotated = await(ledger().apps.rotate(AppName("absent"), sha256("new2")));
  ASSERT_FALSE(rotated);
  EXPECT_EQ(rotated.error().kind, Errc::not_found);
  EXPECT_EQ(rotated.error().code, "token_not_found");
}

TEST_P(LedgerContract, RemovingAnAppClosesItsOpenSessionsAndNoOthers) {
  open(R"(
    INSERT INTO tokens (name, token_sha256) VALUES
      ('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'),
      ('b', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb');
    INSERT INTO sessions (session_id, app_name, agent, created_at, closed_at) VALUES
      ('s1', 'a', 'demo', 1, NULL), ('s2', 'a', 'demo', 2, NULL), ('s3', 'a', 'demo', 3, 9),
      ('s4', 'b', 'demo', 4, NULL), ('s5', 'gone', 'demo', 5, NULL);)");
  EXPECT_EQ(await(ledger().sessions.count_open()), 4);
  ASSERT_TRUE(await(ledger().apps.remove(AppName("a"), at_second(10))));
  EXPECT_EQ(await(ledger().sessions.count_open()), 2);
  ASSERT_EQ(apps().size(), 1u);
  EXPECT_EQ(apps().at(0).name, "b");

  for (const char* name : {"a", "gone"}) {
    const auto removed = await(ledger().apps.remove(AppName(name), at_second(11)));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind, Errc::not_found);
    EXPECT_EQ(removed.error().code, "token_not_found");
  }
  EXPECT_EQ(await(ledger().sessions.count_open()), 2) << "an error means that nothing was kept";
}

TEST_P(LedgerContract, ARemovedNameIsFreeAgain) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  ASSERT_TRUE(await(ledger().apps.remove(AppName("a"), at_second(10))));
  EXPECT_TRUE(await(ledger().apps.add(app_named("a"))));
}

TEST_P(LedgerContract, TheTimeOfLastUseOnlyMovesForwards) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  ASSERT_TRUE(await(ledger().apps.add(app_named("b"))));
  const std::vector<AppUse> first = {{AppName("a"), at_second(100)},
                                     {AppName("gone"), at_second(100)}};
  ASSERT_TRUE(await(ledger().apps.note_use(first)));
  const std::vector<AppUse> second = {{AppName("a"), at_second(90)},
                                      {AppName("b"), at_second(110)}};
  ASSERT_TRUE(await(ledger().apps.note_use(second)));
  EXPECT_EQ(apps().at(0).last_used_at, at_second(100));
  EXPECT_EQ(apps().at(1).last_used_at, at_second(110));
  EXPECT_EQ(apps().size(), 2u);
}

TEST_P(LedgerContract, AnInstanceBeginsOnceBeatsAndEnds) {
  open();
  ASSERT_TRUE(await(ledger().instances.begin("0.1.0", 42, at_second(100))));
  EXPECT_FALSE(await(ledger().instances.begin("0.1.0", 42, at_second(100))))
      << "an id is used once";
  EXPECT_TRUE(await(ledger().instances.beat(at_second(101))));
  EXPECT_TRUE(await(as("removed-meanwhile").instances.beat(at_second(101))));
  EXPECT_TRUE(await(ledger().instances.end(at_second(102))));
  EXPECT_TRUE(ledger().is_healthy());
}

Run run_named(const std::string& id, std::int64_t second, const std::string& app = "a") {
  Run run;
  run.id = RunId(id);
  run.app = AppName(app);
  run.agent = "claude";
  run.model = "sonnet";
  run.prompt_bytes = 12;
  run.started_at = at_second(second);
  run.instance_id = InstanceId("i1");
  return run;
}

std::vector<std::string> ids_of(const RunPage& page) {
  std::vector<std::string> ids;
  for (const RunRecord& record : page.runs) ids.push_back(record.run.id.str());
  return ids;
}

TEST_P(LedgerContract, ARunIsReadBackAsItBeganAndAsItEnded) {
  open();
  ASSERT_TRUE(await(ledger().runs.add(run_named("r1", 100), {4711, 99, "boot"})));
  const RunPage begun = await(ledger().runs.page({})).value();
  ASSERT_EQ(begun.runs.size(), 1u);
  EXPECT_FALSE(begun.next_cursor);
  const auto& run = begun.runs[0].run;
  EXPECT_EQ(run.id, "r1");
  EXPECT_EQ(run.app, "a");
  EXPECT_EQ(run.agent, "claude");
  EXPECT_EQ(run.model, "sonnet");
  EXPECT_EQ(run.prompt_bytes, 12);
  EXPECT_EQ(run.started_at, at_second(100));
  EXPECT_EQ(run.instance_id, "i1");
  EXPECT_FALSE(begun.runs[0].end) << "it is under way";

  RunEnd end;
  end.run_id = RunId("r1");
  end.state = RunState::failed;
  end.outcome = "timeout";
  end.ended_at = at_second(103);
  end.duration_ms = 2'999;
  end.result_bytes = 7;
  end.stop_reason = "timeout";
  end.exit_code = 1;
  end.exit_signal = 9;
  end.usage = Usage{1, 2, 3, 4};
  end.cost_usd = 0.0125;
  ASSERT_TRUE(await(ledger().runs.settle(end)));
  const RunEnd read = await(ledger().runs.page({})).value().runs.at(0).end.value();
  EXPECT_EQ(read.run_id, "r1");
  EXPECT_EQ(read.state, RunState::failed);
  EXPECT_EQ(read.outcome, "timeout");
  EXPECT_EQ(read.ended_at, at_second(103));
  EXPECT_EQ(read.duration_ms, 2'999);
  EXPECT_EQ(read.result_bytes, 7);
  EXPECT_EQ(read.stop_reason, "timeout");
  EXPECT_EQ(read.exit_code, 1);
  EXPECT_EQ(read.exit_signal, 9);
  EXPECT_EQ(read.usage, (Usage{1, 2, 3, 4}));
  EXPECT_EQ(read.cost_usd, 0.0125);
}

TEST_P(LedgerContract, AnEndNeedsNothingOptionalAndMayComeTooLate) {
  open();
  ASSERT_TRUE(await(ledger().runs.add(run_named("r1", 100), {})));
  RunEnd end;
  end.run_id = RunId("r1");
  end.state = RunState::succeeded;
  end.outcome = "ok";
  end.ended_at = at_second(101);
  ASSERT_TRUE(await(ledger().runs.settle(end)));
  const RunEnd read = await(ledger().runs.page({})).value().runs.at(0).end.value();
  EXPECT_FALSE(read.result_bytes);
  EXPECT_FALSE(read.stop_reason);
  EXPECT_FALSE(read.exit_code);
  EXPECT_FALSE(read.exit_signal);
  EXPECT_FALSE(read.usage);
  EXPECT_FALSE(read.cost_usd);
  end.run_id = RunId("removed-meanwhile");
  EXPECT_TRUE(await(ledger().runs.settle(end)));
  EXPECT_EQ(await(ledger().runs.page({})).value().runs.size(), 1u);
}

TEST_P(LedgerContract, WhatAnEarlierLifeLeftUnfinishedIsInterrupted) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at, instance_id,
                      process_pid) VALUES
      ('r1', 'a', 'demo', 'running', 1, NULL, 'old', 7),
      ('r2', 'a', 'demo', 'running', 2, NULL, NULL, 8),
      ('r3', 'a', 'demo', 'running', 3, NULL, 'new', 9),
      ('r4', 'a', 'demo', 'succeeded', 4, 5, 'old', NULL);)");
  EXPECT_EQ(await(as("new").runs.interrupt_left(at_second(50))), 2);
  EXPECT_EQ(await(as("new").runs.interrupt_left(at_second(60))), 0);
  const RunPage page = await(ledger().runs.page({})).value();
  ASSERT_EQ(ids_of(page), (std::vector<std::string>{"r4", "r3", "r2", "r1"}));
  EXPECT_EQ(page.runs[0].end.value().state, RunState::succeeded);
  EXPECT_FALSE(page.runs[1].end);
  for (const std::size_t i : {2, 3}) {
    EXPECT_EQ(page.runs[i].end.value().state, RunState::interrupted);
    EXPECT_EQ(page.runs[i].end.value().outcome, "interrupted");
    EXPECT_EQ(page.runs[i].end.value().ended_at, at_second(50));
  }
}

TEST_P(LedgerContract, RunsAndTheAuditLoseTheirOldestAndNothingThatIsUnderWay) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at) VALUES
      ('r1', 'a', 'demo', 'running', 1, NULL),
      ('r2', 'a', 'demo', 'succeeded', 2, 300),
      ('r3', 'b', 'demo', 'failed', 3, 4),
      ('r4', 'a', 'demo', 'succeeded', 101, 102);
    INSERT INTO session_events (session_id, app_name, event, at) VALUES
      ('s1', 'a', 'turn', 100), ('s1', 'a', 'created', 1), ('s2', 'b', 'turn', 101);)");
  const auto runs = [&] { return ids_of(await(ledger().runs.page({})).value()); };
  const auto lines = [&] { return await(ledger().audit.page({})).value().events.size(); };
  const auto trim = [&](std::int64_t last, std::int64_t rows_max) {
    return await(ledger().audit.trim(at_second(last), rows_max)).value() +
           await(ledger().runs.trim(at_second(last), rows_max)).value();
  };
  EXPECT_EQ(trim(0, 10), 0);
  EXPECT_EQ(trim(100, 1), 2) << "at most one of each";
  EXPECT_EQ(runs(), (std::vector<std::string>{"r4", "r3", "r1"}));
  EXPECT_EQ(await(ledger().audit.page({})).value().events.at(1).event.event, "turn");
  EXPECT_EQ(trim(100, 10), 2);
  EXPECT_EQ(runs(), (std::vector<std::string>{"r4", "r1"}));
  EXPECT_EQ(lines(), 1U);
  EXPECT_EQ(trim(100, 10), 0);
}

TEST_P(LedgerContract, RunsComeNewestFirstInPagesThatLeaveNothingOut) {
  open();
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    // Several in each second, as they come in life.
    const std::string id = "r" + std::to_string(100 + i);
    ASSERT_TRUE(await(ledger().runs.add(run_named(id, 1'000 + i / 4), {})));
    expected.insert(expected.begin(), id);
  }
  for (const std::int64_t limit : {1, 2, 7, 24, 25, 26, 1'000}) {
    AuditFilter filter;
    filter.limit = limit;
    std::vector<std::string> seen;
    std::size_t pages = 0;
    for (;;) {
      const RunPage page = await(ledger().runs.page(filter)).value();
      ASSERT_LE(page.runs.size(), static_cast<std::size_t>(limit));
      for (const std::string& id : ids_of(page)) seen.push_back(id);
      ++pages;
      if (!page.next_cursor) break;
      filter.cursor = page.next_cursor;
    }
    EXPECT_EQ(seen, expected) << limit;
    EXPECT_EQ(pages, static_cast<std::size_t>((25 + limit - 1) / limit))
        << "no empty page at the end";
  }
}

TEST_P(LedgerContract, ARunThatBeginsWhileOthersArePagedShowsInNoLaterPage) {
  open();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(await(ledger().runs.add(run_named("r" + std::to_string(i), 10 + i), {})));
  }
  AuditFilter filter;
  filter.limit = 2;
  filter.cursor = await(ledger().runs.page(filter)).value().next_cursor;
  ASSERT_TRUE(await(ledger().runs.add(run_named("r9", 99), {})));
  EXPECT_EQ(ids_of(await(ledger().runs.page(filter)).value()),
            (std::vector<std::string>{"r1", "r0"}));
}

TEST_P(LedgerContract, RunsAreFilteredByAppAndTime) {
  open();
  for (int i = 0; i < 10; ++i) {
    const std::string app = i % 2 == 0 ? "even" : "odd";
    ASSERT_TRUE(await(ledger().runs.add(run_named("r" + std::to_string(i), 100 + i, app), {})));
  }
  const auto ids = [&](AuditFilter filter) {
    return ids_of(await(ledger().runs.page(filter)).value());
  };
  using Ids = std::vector<std::string>;
  AuditFilter filter;
  filter.app = AppName("odd");
  EXPECT_EQ(ids(filter), (Ids{"r9", "r7", "r5", "r3", "r1"}));
  filter.since = at_second(103);
  EXPECT_EQ(ids(filter), (Ids{"r9", "r7", "r5", "r3"}));
  filter.until = at_second(107);
  EXPECT_EQ(ids(filter), (Ids{"r7", "r5", "r3"}));
  filter.limit = 2;
  EXPECT_EQ(ids(filter), (Ids{"r7", "r5"}));
  filter.cursor = await(ledger().runs.page(filter)).value().next_cursor;
  EXPECT_EQ(ids(filter), (Ids{"r3"}));
  filter.app.reset();
  EXPECT_EQ(ids(filter), (Ids{"r4", "r3"})) << "the cursor is a place, whatever else is asked";
  AuditFilter absent;
  absent.app = AppName("absent");
  EXPECT_TRUE(ids(absent).empty());
  AuditFilter backwards;
  backwards.since = at_second(105);
  backwards.until = at_second(104);
  EXPECT_TRUE(ids(backwards).empty());
}

TEST_P(LedgerContract, ACursorThatNoPageHasGivenIsRefused) {
  open();
  for (const char* cursor : {"", "x", "12", ".r1", "r1.12", "99999999999999999999.r1"}) {
    AuditFilter filter;
    filter.cursor = cursor;
    const auto page = await(ledger().runs.page(filter));
    ASSERT_FALSE(page) << cursor;
    EXPECT_EQ(page.error().kind, Errc::invalid);
    EXPECT_EQ(page.error().code, "validation_failed");
    ASSERT_EQ(page.error().fields.size(), 1u);
    EXPECT_EQ(page.error().fields[0].field, "cursor");
  }
}

TEST_P(LedgerContract, OddRowsOfAnotherProgramBreakNoPage) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at, prompt_bytes,
                      duration_ms, outcome, exit_code, input_tokens, cost_usd, model) VALUES
      ('r1', 'a', 'demo', 'running', 1, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL),
      ('r2', 'a', 'demo', 'succeeded', 2, 3, 'many', 'long', 7, 99999999999, 'x', 'dear', 3),
      ('r3', 'a', 'demo', 'succeeded', 9223372036854775806, 9223372036854775807, 1, 1, 'ok', 0,
       5, 1, 'm'),
      ('r4', 'a', 'demo', 'succeeded', -7, 3, 1, 1, 'ok', 0, 5, 1.5, 'm');)");
  AuditFilter filter;
  filter.limit = 1;
  std::vector<RunRecord> seen;
  for (int i = 0; i < 4; ++i) {
    const RunPage page = await(ledger().runs.page(filter)).value();
    ASSERT_EQ(page.runs.size(), 1u);
    seen.push_back(page.runs[0]);
    filter.cursor = page.next_cursor;
    EXPECT_EQ(page.next_cursor.has_value(), i < 3);
  }
  EXPECT_EQ(seen[0].run.id, "r3");
  EXPECT_FALSE(seen[0].end) << "a time that cannot be is none";
  EXPECT_EQ(seen[1].run.id, "r2");
  const RunEnd end = seen[1].end.value();
  EXPECT_EQ(seen[1].run.prompt_bytes, 0);
  EXPECT_EQ(end.duration_ms, 0);
  EXPECT_FALSE(end.exit_code);
  EXPECT_FALSE(end.usage);
  EXPECT_FALSE(end.cost_usd);
  EXPECT_EQ(seen[2].run.id, "r1");
  EXPECT_EQ(seen[2].run.model, "");
  EXPECT_EQ(seen[3].run.id, "r4");
  EXPECT_EQ(seen[3].end.value().usage, (Usage{5, 0, 0, 0}));
  EXPECT_EQ(seen[3].end.value().cost_usd, 1.5);
}

TEST_P(LedgerContract, ARunWithAStateThatIsNoneIsRefusedAndHidesNoOther) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at) VALUES
      ('r1', 'a', 'demo', 'succeeded', 1, 2),
      ('r2', 'a', 'demo', 'odd', 2, 3),
      ('r3', 'a', 'demo', 'running', 3, 4),
      ('r4', 'a', 'demo', 'failed', 4, 5);)");
  EXPECT_EQ(ids_of(await(ledger().runs.page({})).value()), (std::vector<std::string>{"r4", "r1"}));
  for (const char* id : {"r2", "r3"}) {
    const auto found = await(ledger().runs.find(AppName("a"), RunId(id)));
    ASSERT_FALSE(found) << id;
    EXPECT_EQ(found.error().kind, Errc::internal);
    EXPECT_TRUE(found.error().detail.contains(id)) << found.error().detail;
  }
  EXPECT_EQ(await(ledger().runs.find(AppName("a"), RunId("r4"))).value().end.value().state,
            RunState::failed);
}

Upload upload_named(const std::string& name, std::int64_t expires_at, const char* app = "a") {
  Upload upload;
  upload.token_digest = sha256(name);
  upload.app = AppName(app);
  upload.size = 123;
  upload.extension = ".txt";
  upload.name = "notes.txt";
  upload.created_at = at_second(100);
  upload.expires_at = at_second(expires_at);
  upload.instance_id = InstanceId("i1");
  return upload;
}

TEST_P(LedgerContract, AnUploadIsFoundByItsOwnAppUntilItExpires) {
  open();
  ASSERT_TRUE(await(ledger().uploads.add(upload_named("f1", 200))));
  ASSERT_TRUE(await(ledger().uploads.add(upload_named("f2", 300))));
  const std::vector both = {sha256("f2"), sha256("f1")};
  const auto found = await(ledger().uploads.find(AppName("a"), both, at_second(199) + 999ms));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->at(0).token_digest, sha256("f2")) << "in the order in which they were named";
  const Upload& read = found->at(1);
  EXPECT_EQ(read.token_digest, sha256("f1"));
  EXPECT_EQ(read.app, "a");
  EXPECT_EQ(read.size, 123);
  EXPECT_EQ(read.extension, ".txt");
  EXPECT_EQ(read.name, "notes.txt");
  EXPECT_EQ(read.created_at, at_second(100));
  EXPECT_EQ(read.expires_at, at_second(200));
  EXPECT_EQ(read.instance_id, "i1");

  EXPECT_TRUE(await(ledger().uploads.find(AppName("a"), {}, at_second(0))).value().empty());
  const auto missing = [&](const char* app, std::vector<Digest> digests, std::int64_t second) {
    const auto answer =
        await(ledger().uploads.find(AppName(app), std::move(digests), at_second(second)));
    return answer ? "found" : std::string(answer.error().code);
  };
  EXPECT_EQ(missing("a", both, 200), "file_not_found") << "one of them has expired";
  EXPECT_EQ(missing("b", both, 150), "file_not_found") << "another app's";
  EXPECT_EQ(missing("a", {sha256("f1"), sha256("f3")}, 150), "file_not_found");
  EXPECT_EQ(missing("a", {sha256("f1"), sha256("f1")}, 150), "found");
  EXPECT_TRUE(ledger().is_healthy());
}

TEST_P(LedgerContract, ExpiredUploadsComeOldestFirstUntilTheyAreRemoved) {
  open(
      "INSERT INTO uploads (file_token_sha256, app_name, size, created_at, expires_at) VALUES "
      "('no digest', 'a', 1, 1, 1), ('" +
      std::string(64, 'g') + "', 'a', 1, 1, 1);");
  for (const auto& [name, expires_at] : {std::pair("late", 300), {"first", 100}, {"then", 200}}) {
    ASSERT_TRUE(await(ledger().uploads.add(upload_named(name, expires_at))));
  }
  using Digests = std::vector<Digest>;
  EXPECT_TRUE(await(ledger().uploads.expired(at_second(99), 10)).value().empty());
  EXPECT_EQ(await(ledger().uploads.expired(at_second(200), 10)).value(),
            (Digests{sha256("first"), sha256("then")}));
  EXPECT_EQ(await(ledger().uploads.expired(at_second(200), 1)).value(), Digests{sha256("first")});
  EXPECT_EQ(await(ledger().uploads.all()).value().size(), 3u);
  ASSERT_TRUE(await(ledger().uploads.remove({sha256("first"), sha256("never there")})));
  EXPECT_EQ(await(ledger().uploads.expired(at_second(900), 10)).value(),
            (Digests{sha256("then"), sha256("late")}));
}

TEST_P(LedgerContract, RemovingAnAppLetsItsUploadsExpireAndNoOthers) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  ASSERT_TRUE(await(ledger().uploads.add(upload_named("old", 100))));
  ASSERT_TRUE(await(ledger().uploads.add(upload_named("fresh", 900))));
  ASSERT_TRUE(await(ledger().uploads.add(upload_named("other", 900, "b"))));
  ASSERT_TRUE(await(ledger().apps.remove(AppName("a"), at_second(500))));
  EXPECT_EQ(await(ledger().uploads.expired(at_second(500), 10)).value(),
            (std::vector{sha256("old"), sha256("fresh")}));
}

TEST_P(LedgerContract, ANewLifeForgetsLivesThatEndedLongAgo) {
  constexpr std::int64_t kDay = 86'400;
  open();
  const std::int64_t now = 100 * kDay;
  const auto begin = [&](const char* id, std::int64_t day) {
    return await(as(id).instances.begin("0.1.0", 1, at_second(day * kDay))).has_value();
  };
  ASSERT_TRUE(begin("ended-long-ago", 10));
  ASSERT_TRUE(await(as("ended-long-ago").instances.end(at_second(69 * kDay))));
  ASSERT_TRUE(begin("killed-long-ago", 69));
  ASSERT_TRUE(begin("ended-lately", 10));
  ASSERT_TRUE(await(as("ended-lately").instances.end(at_second(71 * kDay))));
  ASSERT_TRUE(begin("killed-lately", 71));
  ASSERT_TRUE(begin("new", now / kDay));
  // A name can be taken again only where its row has gone.
  EXPECT_TRUE(begin("ended-long-ago", 100));
  EXPECT_TRUE(begin("killed-long-ago", 100));
  EXPECT_FALSE(begin("ended-lately", 100));
  EXPECT_FALSE(begin("killed-lately", 100));
  EXPECT_FALSE(begin("new", 100));
}

TEST_P(LedgerContract, RowsOfAnotherProgramLoadWithWhatTheyLeaveOut) {
  open(R"(
    INSERT INTO tokens (name, token_sha256, ip_cidrs) VALUES
      ('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL),
      ('b', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '[]'),
      ('c', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'null'),
      ('d', 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',
       ' ["192.0.2.7"] ');)");
  const auto list = await(ledger().apps.list());
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->unreadable.empty());
  ASSERT_EQ(list->apps.size(), 4u);
  EXPECT_TRUE(list->apps[0].ip_cidrs.empty());
  EXPECT_TRUE(list->apps[1].ip_cidrs.empty());
  EXPECT_TRUE(list->apps[2].ip_cidrs.empty());
  EXPECT_EQ(list->apps[3].ip_cidrs, std::vector{Cidr::parse("192.0.2.7").value()});
}

TEST_P(LedgerContract, AnAppThatCannotBeUnderstoodIsLeftOutAndReported) {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"ip_cidrs", "''"},
      {"ip_cidrs", "'10.0.0.0/8'"},
      {"ip_cidrs", "'[\"10.0.0.0/8\"'"},
      {"ip_cidrs", "'[\"10.0.0.0/99\"]'"},
      {"ip_cidrs", "'[10]'"},
      {"ip_cidrs", "'{}'"},
      {"ip_cidrs", "'[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[['"},
      {"event_format", "'xml'"},
      {"max_sessions", "-1"},
      {"max_runs", "'many'"},
      {"created_at", "'yesterday'"},
      {"created_at", "9223372036854775807"},
      {"last_used_at", "1.5"},
      {"token_sha256", "'short'"},
      {"token_sha256", "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'"},
      {"name", "'Not Allowed'"},
  };
  std::string rows =
      "INSERT INTO tokens (name, token_sha256) VALUES ('good', '" + to_hex(sha256("good")) + "');";
  for (std::size_t i = 0; i < broken.size(); ++i) {
    const std::string name = "bad" + std::to_string(i);
    rows += "INSERT INTO tokens (name, token_sha256) VALUES ('" + name + "', '" +
            to_hex(sha256(name)) + "'); UPDATE tokens SET " + broken[i].first + " = " +
            broken[i].second + " WHERE name = '" + name + "';";
  }
  open(rows);
  const auto list = await(ledger().apps.list());
  ASSERT_TRUE(list);
  ASSERT_EQ(list->apps.size(), 1u);
  EXPECT_EQ(list->apps[0].name, "good");
  ASSERT_EQ(list->unreadable.size(), broken.size());
  for (std::size_t i = 0; i < broken.size(); ++i) {
    const UnreadableApp& app = list->unreadable[i];
    EXPECT_NE(app.reason.find(broken[i].first), std::string::npos) << app.reason;
    if (broken[i].first != "name") EXPECT_EQ(app.name, "bad" + std::to_string(i));
  }
}

TEST_P(LedgerContract, OwnWritesLeaveTheChangeMarkAlone) {
  open();
  const auto before = await(ledger().foreign_change_mark());
  ASSERT_TRUE(before);
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  EXPECT_EQ(await(ledger().foreign_change_mark()), before.value());
}

TEST_P(LedgerContract, CallsAreDoneInTheOrderInWhichTheyWereMade) {
  open();
  IoContext& io = house_.io;
  std::vector<std::size_t> counts;
  for (int i = 0; i < 50; ++i) {
    boost::asio::co_spawn(io, ledger().apps.add(app_named("a" + std::to_string(i))),
                          [](std::exception_ptr, Result<void> added) { EXPECT_TRUE(added); });
    boost::asio::co_spawn(io, ledger().apps.list(), [&](std::exception_ptr, Result<AppList> list) {
      counts.push_back(list.value().apps.size());
    });
  }
  io.run();
  ASSERT_EQ(counts.size(), 50u);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i], i + 1);
}

TEST_P(LedgerContract, ACallThatFailsSpoilsNoOther) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("taken"))));
  house_.io.restart();
  int kept = 0;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string name = i % 7 == 3 ? "taken" : "a" + std::to_string(i);
    App app = app_named(name);
    app.token_digest = sha256(std::to_string(i));
    boost::asio::co_spawn(house_.io, ledger().apps.add(app),
                          [&](std::exception_ptr, Result<void> added) {
                            added ? ++kept : ++refused;
                            if (!added) EXPECT_EQ(added.error().code, "name_taken");
                          });
  }
  house_.io.run();
  EXPECT_EQ(refused, 29);
  EXPECT_EQ(kept, 171);
  EXPECT_EQ(apps().size(), 172u);
}

TEST_P(LedgerContract, TheDestructorFinishesWhatIsQueued) {
  open();
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    boost::asio::co_spawn(house_.io, ledger().apps.add(app_named("a" + std::to_string(i))),
                          [&](std::exception_ptr, Result<void> added) { kept += added ? 1 : 0; });
  }
  house_.io.poll();  // all calls are made
  house_.ledger.reset();
  house_.io.run();
  EXPECT_EQ(kept, 100);
}

TEST_P(LedgerContract, AfterStopEveryCallIsRefused) {
  open();
  house_.ledger->stop();
  const auto beat = await(ledger().instances.beat(at_second(1)));
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().kind, Errc::unavailable);
  EXPECT_EQ(beat.error().code, "ledger_unavailable");
  EXPECT_EQ(beat.error().retry_after, 1s);
  house_.ledger->stop();
}

Task<void> note_answer(Ledger* ledger, std::optional<bool>* answer) {
  const auto beat = co_await ledger->instances.beat(at_second(1));
  *answer = beat.has_value();
}

TEST_P(LedgerContract, ACallThatHasBegunIsAnsweredAlsoWhenItsCoroutineIsCancelled) {
  open();
  std::optional<bool> answer;
  TaskGroup group(house_.io.get_executor());
  group.spawn(note_answer(&ledger(), &answer));
  boost::asio::post(house_.io, [&] { group.cancel(); });  // comes after the call
  house_.io.run();
  EXPECT_EQ(answer, true);
  EXPECT_EQ(group.size(), 0u);
}

}  // namespace
}  // namespace clawdforge
