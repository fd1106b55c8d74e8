// Every promise of Ledger, on every database there is a driver for.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "base/task_group.h"
#include "ledger/ledger_fixture.h"
#include "ledger/migrations.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

TimePoint at_second(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

struct Database {
  std::string name;
  Result<std::unique_ptr<SqliteDriver>> (*open)(const TempDir& dir);
};

class LedgerContract : public ::testing::TestWithParam<Database> {
 protected:
  // Opens the ledger with rows that another program has left in it.
  void open(const std::string& rows = {}) {
    auto driver = GetParam().open(dir_);
    ASSERT_TRUE(driver) << driver.error().message;
    const auto migrated = migrate(**driver, kSchemaFiles, "under test", at_second(0));
    ASSERT_TRUE(migrated) << migrated.error().message;
    const auto seeded = (*driver)->run_script(rows);
    ASSERT_TRUE(seeded) << seeded.error().detail;
    house_.ledger = std::make_unique<SqlLedger>(std::move(*driver), house_.io.get_executor(),
                                                LedgerWorkerOptions{}, house_.log, house_.metrics);
  }

  template <class T>
  Result<T> await(Async<T> call) {
    return house_.await(std::move(call));
  }
  Ledger& ledger() { return *house_.ledger; }
  std::vector<App> apps() { return await(ledger().apps()).value().apps; }

  TempDir dir_;
  LedgerHouse house_;
};

INSTANTIATE_TEST_SUITE_P(
    Databases, LedgerContract,
    ::testing::Values(Database{"SqliteFile",
                               [](const TempDir& dir) {
                                 return SqliteDriver::open(dir.file("l.db"), {});
                               }},
                      Database{"SqliteMemory",
                               [](const TempDir&) { return SqliteDriver::open(":memory:", {}); }}),
    [](const auto& info) { return info.param.name; });

TEST_P(LedgerContract, AnAppIsReadBackAsItWasAdded) {
  open();
  App app = app_named("news-bot_1");
  app.ip_cidrs = {Cidr::parse("10.0.0.0/8").value(), Cidr::parse("2001:db8::/32").value()};
  app.event_format = EventFormat::simple;
  app.sessions_max = 3;
  app.runs_max = 0;
  app.created_at = at_second(1'700'000'000) + 999ms;
  app.last_used_at = at_second(1'700'000'100);
  ASSERT_TRUE(await(ledger().add_app(app)));

  const auto list = await(ledger().apps());
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
  ASSERT_TRUE(await(ledger().add_app(app_named("plain"))));
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
    ASSERT_TRUE(await(ledger().add_app(app_named(name))));
  }
  std::vector<std::string> names;
  for (const App& app : apps()) names.push_back(app.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a-", "a1", "a_", "ab", "b"}));
}

TEST_P(LedgerContract, ANameIsTakenOnlyOnce) {
  open();
  ASSERT_TRUE(await(ledger().add_app(app_named("a"))));
  App second = app_named("a");
  second.token_digest = sha256("another");
  const auto added = await(ledger().add_app(second));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, Errc::conflict);
  EXPECT_EQ(added.error().code, "name_taken");
  EXPECT_EQ(apps().at(0).token_digest, sha256("a"));
  EXPECT_TRUE(ledger().is_healthy()) << "a refusal is no illness";
}

TEST_P(LedgerContract, ATokenBelongsToOneAppOnly) {
  open();
  ASSERT_TRUE(await(ledger().add_app(app_named("a"))));
  App thief = app_named("b");
  thief.token_digest = sha256("a");
  EXPECT_FALSE(await(ledger().add_app(thief)));
  ASSERT_TRUE(await(ledger().add_app(app_named("c"))));
  EXPECT_FALSE(await(ledger().rotate_app("c", sha256("a"))));
  ASSERT_EQ(apps().size(), 2u);
  EXPECT_EQ(apps().at(1).token_digest, sha256("c"));
}

TEST_P(LedgerContract, RotatingChangesTheTokenAndNothingElse) {
  open();
  App app = app_named("a");
  app.sessions_max = 7;
  ASSERT_TRUE(await(ledger().add_app(app)));
  ASSERT_TRUE(await(ledger().rotate_app("a", sha256("new"))));
  EXPECT_EQ(apps().at(0).token_digest, sha256("new"));
  EXPECT_EQ(apps().at(0).sessions_max, 7);

  const auto rotated = await(ledger().rotate_app("nobody", sha256("new2")));
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
  EXPECT_EQ(await(ledger().open_session_count()), 4);
  ASSERT_TRUE(await(ledger().remove_app("a", at_second(10))));
  EXPECT_EQ(await(ledger().open_session_count()), 2);
  ASSERT_EQ(apps().size(), 1u);
  EXPECT_EQ(apps().at(0).name, "b");

  for (const char* name : {"a", "gone"}) {
    const auto removed = await(ledger().remove_app(name, at_second(11)));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind, Errc::not_found);
    EXPECT_EQ(removed.error().code, "token_not_found");
  }
  EXPECT_EQ(await(ledger().open_session_count()), 2) << "an error means that nothing was kept";
}

TEST_P(LedgerContract, ARemovedNameIsFreeAgain) {
  open();
  ASSERT_TRUE(await(ledger().add_app(app_named("a"))));
  ASSERT_TRUE(await(ledger().remove_app("a", at_second(10))));
  EXPECT_TRUE(await(ledger().add_app(app_named("a"))));
}

TEST_P(LedgerContract, TheTimeOfLastUseOnlyMovesForwards) {
  open();
  ASSERT_TRUE(await(ledger().add_app(app_named("a"))));
  ASSERT_TRUE(await(ledger().add_app(app_named("b"))));
  const std::vector<AppUse> first = {{"a", at_second(100)}, {"gone", at_second(100)}};
  ASSERT_TRUE(await(ledger().note_use(first)));
  const std::vector<AppUse> second = {{"a", at_second(90)}, {"b", at_second(110)}};
  ASSERT_TRUE(await(ledger().note_use(second)));
  EXPECT_EQ(apps().at(0).last_used_at, at_second(100));
  EXPECT_EQ(apps().at(1).last_used_at, at_second(110));
  EXPECT_EQ(apps().size(), 2u);
}

TEST_P(LedgerContract, AnInstanceBeginsOnceBeatsAndEnds) {
  open();
  const Instance instance{"i1", "0.1.0", 42, at_second(100)};
  ASSERT_TRUE(await(ledger().begin_instance(instance)));
  EXPECT_FALSE(await(ledger().begin_instance(instance))) << "an id is used once";
  EXPECT_TRUE(await(ledger().beat("i1", at_second(101))));
  EXPECT_TRUE(await(ledger().beat("removed-by-somebody", at_second(101))));
  EXPECT_TRUE(await(ledger().end_instance("i1", at_second(102))));
  EXPECT_TRUE(ledger().is_healthy());
}

TEST_P(LedgerContract, RowsOfAnotherProgramLoadWithWhatTheyLeaveOut) {
  open(R"(
    INSERT INTO tokens (name, token_sha256, ip_cidrs) VALUES
      ('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL),
      ('b', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '[]'),
      ('c', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'null'),
      ('d', 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',
       ' ["192.0.2.7"] ');)");
  const auto list = await(ledger().apps());
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
  const auto list = await(ledger().apps());
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
  ASSERT_TRUE(await(ledger().add_app(app_named("a"))));
  EXPECT_EQ(await(ledger().foreign_change_mark()), before.value());
}

TEST_P(LedgerContract, CallsAreDoneInTheOrderInWhichTheyWereMade) {
  open();
  IoContext& io = house_.io;
  std::vector<std::size_t> counts;
  for (int i = 0; i < 50; ++i) {
    boost::asio::co_spawn(io, ledger().add_app(app_named("a" + std::to_string(i))),
                          [](std::exception_ptr, Result<void> added) { EXPECT_TRUE(added); });
    boost::asio::co_spawn(io, ledger().apps(), [&](std::exception_ptr, Result<AppList> list) {
      counts.push_back(list.value().apps.size());
    });
  }
  io.run();
  ASSERT_EQ(counts.size(), 50u);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i], i + 1);
}

TEST_P(LedgerContract, ACallThatFailsSpoilsNoOther) {
  open();
  ASSERT_TRUE(await(ledger().add_app(app_named("taken"))));
  house_.io.restart();
  int kept = 0;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string name = i % 7 == 3 ? "taken" : "a" + std::to_string(i);
    App app = app_named(name);
    app.token_digest = sha256(std::to_string(i));
    boost::asio::co_spawn(house_.io, ledger().add_app(app),
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
    boost::asio::co_spawn(house_.io, ledger().add_app(app_named("a" + std::to_string(i))),
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
  const auto beat = await(ledger().beat("i1", at_second(1)));
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().kind, Errc::unavailable);
  EXPECT_EQ(beat.error().code, "ledger_unavailable");
  EXPECT_EQ(beat.error().retry_after, 1s);
  house_.ledger->stop();
}

Task<void> note_answer(Ledger* ledger, std::optional<bool>* answer) {
  const auto beat = co_await ledger->beat("i1", at_second(1));
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
