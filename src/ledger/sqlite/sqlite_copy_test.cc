#include <sys/stat.h>

#include <fstream>

#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

class SqliteCopy : public ::testing::Test {
 protected:
  SqliteCopy() {
    EXPECT_TRUE(house_.open(dir_.file("l.db")));
    for (const char* name : {"a", "b"}) {
      EXPECT_TRUE(house_.await(house_.ledger->apps.add(app_named(name))));
    }
    auto driver = SqliteDriver::open_to_read(dir_.file("l.db"), {});
    EXPECT_TRUE(driver);
    source_ = std::move(*driver);
  }
  std::string target() {
    std::ofstream(dir_.file("copy.db"));
    return dir_.file("copy.db");
  }

  TempDir dir_;
  LedgerHouse house_;
  std::unique_ptr<SqliteDriver> source_;
};

TEST_F(SqliteCopy, HoldsWhatIsOnlyInTheLogYet) {
  const auto copied = source_->copy_into(target(), [] { return false; });
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(copied->apps, 2);
  EXPECT_EQ(OtherProgram(dir_.file("copy.db")).ask("SELECT name FROM tokens ORDER BY name"),
            "a\nb");
  EXPECT_EQ(OtherProgram(dir_.file("copy.db")).ask("PRAGMA journal_mode"), "delete");
  EXPECT_FALSE(std::filesystem::exists(dir_.file("copy.db-wal")));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("copy.db-shm")));
}

// A writer that commits at every step of the copy: it is neither held up nor copied, and the
// copy does not start over.
TEST_F(SqliteCopy, IsOneStateHoweverMuchIsWrittenMeanwhile) {
  OtherProgram other(dir_.file("l.db"));
  other.run("CREATE TABLE pad (x)");
  for (int i = 0; i < 40; ++i) other.run("INSERT INTO pad VALUES (zeroblob(1048576))");
  int steps = 0;
  const auto copied = source_->copy_into(target(), [&] {
    ++steps;
    EXPECT_TRUE(house_.await(house_.ledger->apps.add(app_named("c" + std::to_string(steps)))));
    return false;
  });
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_GE(steps, 40 / 4);
  EXPECT_EQ(copied->apps, 2);
  OtherProgram copy(dir_.file("copy.db"));
  EXPECT_EQ(copy.ask("SELECT COUNT(*) FROM tokens"), "2");
  EXPECT_EQ(copy.ask("SELECT COUNT(*) FROM pad"), "40");
  EXPECT_EQ(copy.ask("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(other.ask("SELECT COUNT(*) FROM tokens"), std::to_string(2 + steps));
}

TEST_F(SqliteCopy, StopsWhenItIsTold) {
  const auto copied = source_->copy_into(target(), [] { return true; });
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().kind, Errc::gone);
  EXPECT_TRUE(source_->begin(Access::read)) << "the source can be used again";
}

TEST_F(SqliteCopy, NeedsAFileThatItCanWrite) {
  const auto copied = source_->copy_into(dir_.file("none/copy.db"), [] { return false; });
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().kind, Errc::unavailable);
}

}  // namespace
}  // namespace clawdforge
