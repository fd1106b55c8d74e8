// What is particular to SQLite in a file: other programs, faults of the disk, restarts.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>
#include <set>

#include "ledger/core/schema_files.h"
#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

TimePoint at_second(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string start_message(const std::string& path, LedgerOptions options = {}) {
  LedgerHouse house;
  const auto opened = house.open(path, options);
  return opened ? "opened" : opened.error().message;
}

constexpr const char* kDamaged =
    " is not a SQLite database or is damaged; restore it from a backup or move it away.";

// A ledger with some apps in it, closed again.
void make_ledger(const std::string& path, int apps = 0) {
  LedgerHouse house;
  ASSERT_TRUE(house.open(path));
  for (int i = 0; i < apps; ++i) {
    ASSERT_TRUE(house.await(house.ledger->apps.add(app_named("app" + std::to_string(i)))));
  }
}

TEST(SqliteStart, MakesAFileThatOnlyItsOwnerReads) {
  const TempDir dir;
  const mode_t before = umask(0);
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  umask(before);
  ASSERT_TRUE(house.await(house.ledger->instances.beat(at_second(1))));
  for (const char* name : {"l.db", "l.db-wal", "l.db-shm"}) {
    struct stat status{};
    ASSERT_EQ(stat(dir.file(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
  }
}

TEST(SqliteStart, OpensAgainWhatItClosedAndMigratesOnce) {
  const TempDir dir;
  make_ledger(dir.file("l.db"), 3);
  EXPECT_FALSE(std::filesystem::exists(dir.file("l.db-wal")))
      << "the log is copied back at the end";
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  EXPECT_EQ(house.await(house.ledger->apps.list()).value().apps.size(), 3u);
  OtherProgram other(dir.file("l.db"));
  EXPECT_EQ(
      other.ask("SELECT COUNT(*), MAX(number) FROM schema_migrations"),
      std::to_string(std::size(kSchemaFiles)) + "|" + std::to_string(std::size(kSchemaFiles)));
}

TEST(SqliteStart, RefusesWhatIsNoDatabase) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  write_file(path, std::string(8192, 'x'));
  EXPECT_EQ(start_message(path), "The ledger " + path + kDamaged);
}

TEST(SqliteStart, RefusesADamagedSchema) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(3'000, '\xff');
  }
  EXPECT_EQ(start_message(path), "The ledger " + path + kDamaged);
}

TEST(SqliteStart, RefusesTheLedgerOfANewerProgramAndLeavesItAlone) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path);
  OtherProgram other(path);
  other.run("INSERT INTO schema_migrations VALUES (99, '0099_later.sql', 1)");
  EXPECT_EQ(start_message(path),
            "The ledger " + path +
                " was written by a newer clawdforge (schema 99, this program knows " +
                std::to_string(std::size(kSchemaFiles)) + "); use that version.");
  EXPECT_EQ(other.ask("SELECT MAX(number) FROM schema_migrations"), "99");
}

TEST(SqliteStart, RefusesTheDatabaseOfAnotherProgram) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  {
    OtherProgram other(path);
    other.run("PRAGMA application_id = 7; CREATE TABLE t (a)");
  }
  EXPECT_EQ(start_message(path), "The ledger " + path + " is the database of another program.");
}

TEST(SqliteStart, SaysWhenTablesOfAnotherProgramAreInTheWay) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  OtherProgram other(path);
  other.run("CREATE TABLE tokens (a)");
  EXPECT_NE(start_message(path).find("table tokens already exists"), std::string::npos);
  EXPECT_EQ(other.ask("SELECT name FROM sqlite_master"), "tokens") << "all or nothing";
}

TEST(SqliteStart, RefusesPlacesThatAreNoFile) {
  const TempDir dir;
  EXPECT_EQ(start_message(dir.path()), "The ledger " + dir.path() + " is not a plain file.");
  EXPECT_EQ(start_message(dir.file("no/l.db")),
            "The ledger " + dir.file("no/l.db") + " cannot be made: No such file or directory.");
  EXPECT_EQ(start_message(""), "The ledger sqlite: names no file.");
}

TEST(SqliteStart, RefusesOtherKindsOfDatabase) {
  LedgerHouse house;
  for (const char* url : {"postgresql://db/x", "postgres://db/x", "mysql:x", "", "l.db"}) {
    const auto opened = open_ledger(house.io.get_executor(), url, InstanceId("i1"), house.log,
                                    house.metrics, LedgerOptions{});
    ASSERT_FALSE(opened) << url;
    EXPECT_EQ(opened.error().kind, Errc::invalid) << url;
  }
}

TEST(SqliteStart, SaysWhenAnotherProgramHoldsTheLock) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path);
  OtherProgram other(path);
  other.run("BEGIN IMMEDIATE");
  LedgerOptions options;
  options.sqlite.lock_wait_max = 20ms;
  EXPECT_EQ(
      start_message(path, options),
      "The ledger " + path + " is locked by another program; end that program or wait for it.");
}

// What `act` says, done in a child process that ends without any clean-up. Only while
// this process has one thread.
template <class Act>
std::string said_in_child(Act act) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = act();
    const auto written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child's end";
  return text;
}

// Root may write anything, so this is tried as a user without privileges.
std::string start_message_without_privilege(const std::string& path) {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return "cannot drop privileges";
  return start_message(path);
}

TEST(SqliteStart, SaysWhenItMayNotWriteTheFile) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path);
  chmod(dir.path().c_str(), 0755);
  chmod(path.c_str(), 0444);
  EXPECT_EQ(
      said_in_child([&] { return start_message_without_privilege(path); }),
      "The ledger " + path + " is read-only: this user needs to write the file and its directory.");
}

TEST(SqliteStart, SaysWhenItMayNotWriteTheDirectory) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path);
  chmod(path.c_str(), 0666);
  chmod(dir.path().c_str(), 0555);
  const std::string said = said_in_child([&] { return start_message_without_privilege(path); });
  EXPECT_EQ(said_in_child([&] { return start_message_without_privilege(dir.file("new.db")); }),
            "The ledger " + dir.file("new.db") + " cannot be made: Permission denied.");
  chmod(dir.path().c_str(), 0755);
  EXPECT_EQ(said, "The ledger " + path +
                      " is read-only: this user needs to write the file and its directory.");
}

// A small disk of its own at `path`, for this process only. False if the system forbids it.
bool mount_small_disk(const std::string& path) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0, "size=2m") == 0;
}

// Takes all the room that is left.
void fill_disk(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (const std::string block(4096, 'x'); write(file, block.data(), block.size()) > 0;) continue;
  close(file);
}

std::string live_through_a_full_disk(const TempDir& dir) {
  if (!mount_small_disk(dir.path())) return "no small disk";
  LedgerHouse house;
  if (!house.open(dir.file("l.db"))) return "not opened";
  fill_disk(dir.file("filler"));
  int kept = 0;
  Result<void> added;
  while (kept < 100'000) {
    added = house.await(house.ledger->apps.add(app_named("app" + std::to_string(kept))));
    if (!added) break;
    ++kept;
  }
  if (added || added.error().kind != Errc::unavailable) return "not unavailable";
  if (added.error().detail.find("the disk is full") != 0) return added.error().detail;
  if (house.ledger->is_healthy()) return "healthy on a full disk";
  const std::string full = start_message(dir.file("other.db"));
  if (full != "The ledger " + dir.file("other.db") + " cannot be written: the disk is full.") {
    return full;
  }
  std::filesystem::remove(dir.file("filler"));
  const auto beat = house.await(house.ledger->instances.beat(at_second(1)));
  if (!beat) return "does not recover: " + beat.error().detail;
  if (!house.ledger->is_healthy()) return "not healthy again";
  const auto list = house.await(house.ledger->apps.list());
  if (!list || list->apps.size() != static_cast<std::size_t>(kept)) return "not what was answered";
  return "lived";
}

TEST(SqliteFaults, AFullDiskIsAnErrorThatPasses) {
  const TempDir dir;
  const std::string said = said_in_child([&] { return live_through_a_full_disk(dir); });
  if (said == "no small disk") GTEST_SKIP() << "mounting a small disk needs root";
  EXPECT_EQ(said, "lived");
}

TEST(SqliteFaults, DamageInTheMiddleIsAClearErrorOfTheCallThatMeetsIt) {
  const TempDir dir;
  const std::string path = dir.file("l.db");
  make_ledger(path, 1500);  // so that the last quarter of the file has rows of apps alone
  const auto size = std::filesystem::file_size(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - size / 4));
    file << std::string(size / 4, '\xff');
  }
  LedgerHouse house;
  ASSERT_TRUE(house.open(path));
  const auto list = house.await(house.ledger->apps.list());
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().kind, Errc::unavailable);
  EXPECT_EQ(list.error().code, "ledger_unavailable");
  EXPECT_TRUE(list.error().detail.starts_with("it is damaged: ")) << list.error().detail;
  EXPECT_EQ(list.error().message.find(path), std::string::npos) << "callers learn no path";
  EXPECT_FALSE(house.ledger->is_healthy());
}

TEST(SqliteFaults, AFileThatIsTakenAwayIsNoticedAndAcceptedWhenItIsBack) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  std::filesystem::rename(dir.file("l.db"), dir.file("away.db"));
  const auto beat = house.await(house.ledger->instances.beat(at_second(1)));
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().kind, Errc::unavailable);
  EXPECT_NE(beat.error().detail.find("was moved, deleted or replaced"), std::string::npos);
  EXPECT_FALSE(house.await(house.ledger->apps.list())) << "it does not answer from a stale file";
  EXPECT_FALSE(house.ledger->is_healthy());

  std::filesystem::rename(dir.file("away.db"), dir.file("l.db"));
  EXPECT_TRUE(house.await(house.ledger->instances.beat(at_second(2))));
  EXPECT_TRUE(house.await(house.ledger->apps.list()));
  EXPECT_TRUE(house.ledger->is_healthy());
}

TEST(SqliteFaults, ClosingAReplacedLedgerLeavesTheNewFileAlone) {
  const TempDir dir;
  make_ledger(dir.file("new.db"), 1);
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  ASSERT_TRUE(house.await(house.ledger->instances.beat(at_second(1))));
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(dir.file("l.db") + end);
  std::filesystem::rename(dir.file("new.db"), dir.file("l.db"));
  OtherProgram other(dir.file("l.db"));
  other.run("UPDATE tokens SET max_runs = 5");
  ASSERT_TRUE(std::filesystem::exists(dir.file("l.db-wal")));

  EXPECT_FALSE(house.await(house.ledger->instances.beat(at_second(2))));
  house.ledger.reset();
  EXPECT_TRUE(std::filesystem::exists(dir.file("l.db-wal")));
  EXPECT_EQ(OtherProgram(dir.file("l.db")).ask("SELECT max_runs FROM tokens"), "5");
}

TEST(SqliteNeighbours, AWriteWaitsForAnotherProgramsLock) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  OtherProgram other(dir.file("l.db"));
  other.run("BEGIN IMMEDIATE");
  int kept = 0;
  int refused = 0;
  boost::asio::co_spawn(house.io, house.ledger->instances.beat(at_second(1)),
                        [&](std::exception_ptr, Result<void> beat) { beat ? ++kept : ++refused; });
  house.io.run_for(50ms);
  EXPECT_EQ(kept + refused, 0) << "not while the lock is held";
  other.run("COMMIT");
  house.io.run();
  EXPECT_EQ(kept, 1);
}

TEST(SqliteNeighbours, AWriteGivesUpAfterItsLimitWhileReadsGoOn) {
  const TempDir dir;
  LedgerHouse house;
  LedgerOptions options;
  options.sqlite.lock_wait_max = 20ms;
  ASSERT_TRUE(house.open(dir.file("l.db"), options));
  OtherProgram other(dir.file("l.db"));
  other.run("BEGIN IMMEDIATE");
  const auto beat = house.await(house.ledger->instances.beat(at_second(1)));
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().kind, Errc::unavailable);
  EXPECT_TRUE(beat.error().detail.starts_with("another program holds its lock"))
      << beat.error().detail;
  EXPECT_FALSE(house.ledger->is_healthy());
  EXPECT_TRUE(house.await(house.ledger->apps.list()));
  other.run("COMMIT");
  EXPECT_TRUE(house.await(house.ledger->instances.beat(at_second(2))));
  EXPECT_TRUE(house.ledger->is_healthy());
}

TEST(SqliteNeighbours, WhatAnotherProgramChangesIsMarkedAndRead) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  ASSERT_TRUE(house.await(house.ledger->apps.add(app_named("a"))));
  const auto before = house.await(house.ledger->foreign_change_mark()).value();
  EXPECT_EQ(house.await(house.ledger->foreign_change_mark()).value(), before);
  OtherProgram other(dir.file("l.db"));
  other.run("DELETE FROM tokens");
  EXPECT_NE(house.await(house.ledger->foreign_change_mark()).value(), before);
  EXPECT_TRUE(house.await(house.ledger->apps.list()).value().apps.empty());
}

TEST(SqliteNeighbours, ReadTheRowsAsTheContractHasThem) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  App app = app_named("a");
  app.ip_cidrs = {Cidr::parse("10.0.0.0/8").value(), Cidr::parse("192.0.2.1").value()};
  ASSERT_TRUE(house.await(house.ledger->apps.add(app)));
  OtherProgram other(dir.file("l.db"));
  EXPECT_EQ(other.ask("SELECT name, token_sha256, ip_cidrs, event_format, max_sessions, max_runs, "
                      "created_at, last_used_at FROM tokens"),
            "a|" + to_hex(sha256("a")) + "|[\"" + app.ip_cidrs[0].text() + "\",\"" +
                app.ip_cidrs[1].text() + "\"]|NULL|NULL|NULL|1700000000|NULL");

  other.run(
      "INSERT INTO sessions (session_id, app_name, agent, created_at, closed_at, close_reason) "
      "VALUES ('s1', 'a', 'demo', 1, NULL, NULL), ('s2', 'a', 'demo', 2, 9, 'asked'), "
      "('s3', 'b', 'demo', 3, NULL, NULL)");
  ASSERT_TRUE(house.await(house.ledger->apps.remove(AppName("a"), at_second(20))));
  EXPECT_EQ(other.ask("SELECT session_id, closed_at, close_reason FROM sessions ORDER BY 1"),
            "s1|20|token_revoked\ns2|9|asked\ns3|NULL|NULL");
  EXPECT_EQ(other.ask("SELECT session_id, app_name, event, at, meta FROM session_events"),
            "s1|a|close|20|{\"reason\":\"token_revoked\"}");

  ASSERT_TRUE(house.await(house.ledger->instances.begin("0.1.0", 42, at_second(100))));
  ASSERT_TRUE(house.await(house.ledger->instances.beat(at_second(101))));
  ASSERT_TRUE(house.await(house.ledger->instances.end(at_second(102))));
  EXPECT_EQ(other.ask("SELECT * FROM instances"), "i1|0.1.0|42|100|102|1|102");
}

TEST(SqliteCommits, WritesThatWaitTogetherAreCommittedTogether) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  OtherProgram other(dir.file("l.db"));
  other.run("BEGIN IMMEDIATE");
  int kept = 0;
  for (int i = 0; i < 200; ++i) {
    boost::asio::co_spawn(house.io, house.ledger->apps.add(app_named("app" + std::to_string(i))),
                          [&](std::exception_ptr, Result<void> added) { kept += added ? 1 : 0; });
  }
  house.io.poll();
  other.run("COMMIT");
  house.io.run();
  EXPECT_EQ(kept, 200);
  EXPECT_LE(house.metric("clawdforge_ledger_commit_seconds_count"), 2);
  EXPECT_EQ(house.metric("clawdforge_ledger_committed_jobs_total"), 200);
}

Task<void> add_apps_for_ever(Ledger* ledger, int writer, int pipe_end) {
  for (int i = 0;; ++i) {
    const std::string name = "w" + std::to_string(writer) + "-" + std::to_string(i);
    App app = app_named(name);
    const auto added = co_await ledger->apps.add(std::move(app));
    const std::string line = name + "\n";
    if (!added || write(pipe_end, line.data(), line.size()) < 0) _exit(1);
  }
}

TEST(SqliteCommits, WhatWasAnsweredIsThereAfterAKill) {
  const TempDir dir;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    LedgerHouse house;
    if (!house.open(dir.file("l.db"))) _exit(1);
    for (int writer = 0; writer < 8; ++writer) {
      boost::asio::co_spawn(house.io, add_apps_for_ever(house.ledger.get(), writer, ends[1]),
                            [](std::exception_ptr) { _exit(1); });
    }
    house.io.run();
    _exit(1);
  }
  close(ends[1]);
  std::string answered;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
    answered.append(buffer, static_cast<std::size_t>(size));
    if (answered.size() > 2'000) kill(child, SIGKILL);  // and read on what was said before
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  std::set<std::string> kept;
  for (const App& app : house.await(house.ledger->apps.list()).value().apps)
    kept.insert(app.name.str());
  std::istringstream lines(answered);
  for (std::string name; std::getline(lines, name);) EXPECT_TRUE(kept.contains(name)) << name;
}

TEST(SqliteCommits, TheDestructorLeavesAllThatWasQueuedInTheFile) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  for (int i = 0; i < 100; ++i) {
    boost::asio::co_spawn(house.io, house.ledger->apps.add(app_named("app" + std::to_string(i))),
                          [](std::exception_ptr, Result<void> added) { EXPECT_TRUE(added); });
  }
  house.io.poll();
  house.ledger.reset();
  EXPECT_EQ(OtherProgram(dir.file("l.db")).ask("SELECT COUNT(*) FROM tokens"), "100");
  house.io.run();
}

TEST(SqliteCommits, TheLogStaysBoundedUnderLoad) {
  const TempDir dir;
  LedgerHouse house;
  LedgerOptions options;
  options.sqlite.wal_pages_max = 64;
  options.sqlite.wal_pages_idle_max = 1'000'000;
  ASSERT_TRUE(house.open(dir.file("l.db"), options));
  // What the migrations took of the log is written over, and not given back.
  const auto migrated = std::filesystem::file_size(dir.file("l.db-wal"));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(house.await(house.ledger->instances.beat(at_second(i))));
  }
  EXPECT_LE(std::filesystem::file_size(dir.file("l.db-wal")), migrated + 64 * 4'200u);
}

TEST(SqliteRuns, TheProcessMarkIsThereWhileTheRunLives) {
  const TempDir dir;
  LedgerHouse house;
  ASSERT_TRUE(house.open(dir.file("l.db")));
  OtherProgram other(dir.file("l.db"));
  for (const char* id : {"settled", "cut-off"}) {
    ASSERT_TRUE(house.await(house.ledger->runs.add({.id = RunId(id),
                                                    .app = AppName("a"),
                                                    .agent = "demo",
                                                    .model = "m",
                                                    .prompt_bytes = 5,
                                                    .started_at = at_second(100),
                                                    .instance_id = InstanceId("old")},
                                                   {4711, 99, "boot"})));
  }
  const std::string marks =
      "SELECT run_id, state, process_pid, process_start, process_boot_id FROM runs ORDER BY 1";
  EXPECT_EQ(other.ask(marks), "cut-off|running|4711|99|boot\nsettled|running|4711|99|boot");
  RunEnd end;
  end.run_id = RunId("settled");
  end.state = RunState::succeeded;
  ASSERT_TRUE(house.await(house.ledger->runs.settle(end)));
  EXPECT_EQ(house.await(house.as("new").runs.interrupt_left(at_second(200))), 1);
  EXPECT_EQ(other.ask(marks),
            "cut-off|interrupted|NULL|NULL|NULL\nsettled|succeeded|NULL|NULL|NULL");
}

}  // namespace
}  // namespace clawdforge
