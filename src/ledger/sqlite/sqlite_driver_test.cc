#include "ledger/sqlite/sqlite_driver.h"

#include "ledger/core/migrations.h"
#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

std::unique_ptr<SqliteDriver> in_memory() { return SqliteDriver::open(":memory:", {}).value(); }

TEST(SqliteDriver, BindsParametersByTheirNumberAndNotByTheirOrder) {
  const auto driver = in_memory();
  const auto result =
      driver->execute("SELECT $2, $1, $2", {std::string("one"), std::string("two")});
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->rows.at(0), (SqlRow{"two", "one", "two"}));
}

TEST(SqliteDriver, GivesEveryKindOfValueBackAsItWas) {
  const auto driver = in_memory();
  ASSERT_TRUE(driver->run_script("CREATE TABLE t (a BIGINT, b DOUBLE PRECISION, c TEXT, d TEXT)"));
  const SqlRow row = {std::int64_t{-9'000'000'000'000'000'000}, 0.5, std::string("a\0b\xc3\xa9", 5),
                      std::monostate()};
  const auto added = driver->execute("INSERT INTO t VALUES ($1, $2, $3, $4)", row);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->changed, 1);
  const auto read = driver->execute("SELECT a, b, c, d FROM t");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rows.at(0), row);
  EXPECT_EQ(read->changed, 0);
}

TEST(SqliteDriver, TellsAMistakeInAStatementFromATroubledFile) {
  const auto driver = in_memory();
  const auto unknown = driver->execute("SELECT * FROM nowhere");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Errc::internal);
  EXPECT_NE(unknown.error().detail.find("no such table: nowhere"), std::string::npos);
  const auto missing = driver->execute("SELECT $1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Errc::internal);
}

TEST(SqliteDriver, AStatementCanBeUsedAgainAfterItFailed) {
  const auto driver = in_memory();
  ASSERT_TRUE(driver->run_script("CREATE TABLE t (a BIGINT UNIQUE)"));
  constexpr std::string_view kAdd = "INSERT INTO t VALUES ($1)";
  ASSERT_TRUE(driver->execute(kAdd, {std::int64_t{1}}));
  EXPECT_FALSE(driver->execute(kAdd, {std::int64_t{1}}));
  EXPECT_TRUE(driver->execute(kAdd, {std::int64_t{2}}));
}

TEST(SqliteDriver, RollsBackAndBeginsAgainWhateverWasLeftOpen) {
  const auto driver = in_memory();
  ASSERT_TRUE(driver->run_script("CREATE TABLE t (a BIGINT)"));
  driver->rollback();
  ASSERT_TRUE(driver->begin(Access::write));
  ASSERT_TRUE(driver->execute("INSERT INTO t VALUES ($1)", {std::int64_t{1}}));
  ASSERT_TRUE(driver->begin(Access::write)) << "the one before is given up";
  ASSERT_TRUE(driver->commit());
  EXPECT_TRUE(driver->execute("SELECT * FROM t")->rows.empty());
}

TEST(SqliteDriver, CopiesTheLogBackWhenIdleAndNotBefore) {
  const TempDir dir;
  const auto driver = SqliteDriver::open(dir.file("l.db"), {.wal_pages_idle_max = 20}).value();
  ASSERT_TRUE(driver->run_script("CREATE TABLE t (a TEXT)"));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(driver->begin(Access::write));
    ASSERT_TRUE(driver->execute("INSERT INTO t VALUES ($1)", {std::string(3'000, 'x')}));
    ASSERT_TRUE(driver->commit());
  }
  EXPECT_GE(driver->wal_pages(), 40);
  ASSERT_TRUE(driver->tidy(Moment::busy));
  EXPECT_LT(std::filesystem::file_size(dir.file("l.db")), 40 * 4096u);
  ASSERT_TRUE(driver->tidy(Moment::idle));
  EXPECT_GE(std::filesystem::file_size(dir.file("l.db")), 40 * 4096u);
  ASSERT_TRUE(driver->begin(Access::write));
  ASSERT_TRUE(driver->execute("INSERT INTO t VALUES ($1)", {std::string("y")}));
  ASSERT_TRUE(driver->commit());
  EXPECT_LT(driver->wal_pages(), 10) << "the log has started over";
}

constexpr SchemaFile kFirst{"0001_first.sql", "CREATE TABLE a (id AUTO_ID, x TEXT);"};
constexpr SchemaFile kSecond{"0002_second.sql",
                             "ALTER TABLE a ADD COLUMN y TEXT; "
                             "INSERT INTO a (x, y) VALUES ('1', '2');"};
constexpr SchemaFile kBroken{"0002_broken.sql", "CREATE TABLE b (x TEXT); CREATE NONSENSE;"};
constexpr TimePoint kNow{std::chrono::seconds(100)};

TEST(Migrations, RunOnceInOrderAndAreWrittenDown) {
  const auto driver = in_memory();
  const SchemaFile one[] = {kFirst};
  EXPECT_EQ(migrate(*driver, one, "x", kNow).value(), 1);
  EXPECT_EQ(migrate(*driver, one, "x", kNow).value(), 0);
  const SchemaFile both[] = {kFirst, kSecond};
  EXPECT_EQ(migrate(*driver, both, "x", kNow).value(), 1);
  EXPECT_EQ(migrate(*driver, both, "x", kNow).value(), 0);
  EXPECT_EQ(driver->execute("SELECT id, x, y FROM a")->rows,
            (std::vector<SqlRow>{{std::int64_t{1}, "1", "2"}}));
  EXPECT_EQ(driver->execute("SELECT number, name, applied_at FROM schema_migrations")->rows,
            (std::vector<SqlRow>{{std::int64_t{1}, "0001_first.sql", std::int64_t{100}},
                                 {std::int64_t{2}, "0002_second.sql", std::int64_t{100}}}));
}

TEST(Migrations, AllAtOnceComeToTheSame) {
  const auto driver = in_memory();
  const SchemaFile both[] = {kFirst, kSecond};
  EXPECT_EQ(migrate(*driver, both, "x", kNow).value(), 2);
  EXPECT_EQ(driver->execute("SELECT id, x, y FROM a")->rows.size(), 1u);
}

TEST(Migrations, OneThatFailsLeavesNothingOfItselfBehind) {
  const auto driver = in_memory();
  const SchemaFile files[] = {kFirst, kBroken};
  const auto migrated = migrate(*driver, files, "/l.db", kNow);
  ASSERT_FALSE(migrated);
  EXPECT_TRUE(migrated.error().message.starts_with("The ledger /l.db cannot be brought up to date"))
      << migrated.error().message;
  EXPECT_EQ(driver->execute("SELECT number FROM schema_migrations")->rows.size(), 1u);
  EXPECT_FALSE(driver->execute("SELECT * FROM b"));
}

TEST(Migrations, AGapInTheNumbersIsRefused) {
  const auto driver = in_memory();
  const SchemaFile files[] = {kSecond};
  EXPECT_FALSE(migrate(*driver, files, "x", kNow));
}

// Without asking the database, whether another program has written.
class ForeignChangesTest : public testing::Test {
 protected:
  std::optional<std::uint64_t> mark() const { return driver_->foreign_changes()->mark(); }
  void write(const std::string& statement) {
    ASSERT_TRUE(driver_->begin(Access::write));
    ASSERT_TRUE(driver_->execute(statement));
    ASSERT_TRUE(driver_->commit());
  }

  const TempDir dir_;
  const std::unique_ptr<SqliteDriver> driver_ =
      SqliteDriver::open(dir_.file("ledger.db"), {}).value();
};

TEST_F(ForeignChangesTest, OurOwnCommitsLeaveTheMark) {
  write("CREATE TABLE t (a BIGINT)");
  const auto before = mark();
  ASSERT_TRUE(before);
  write("INSERT INTO t VALUES (1)");
  EXPECT_EQ(mark(), before);
  write("DELETE FROM t WHERE a = 2");
  EXPECT_EQ(mark(), before) << "a commit without a change";
  ASSERT_TRUE(driver_->begin(Access::write));
  ASSERT_TRUE(driver_->execute("INSERT INTO t VALUES (2)"));
  driver_->rollback();
  EXPECT_EQ(mark(), before) << "a transaction that was given up";
  ASSERT_TRUE(driver_->tidy(Moment::idle));
  ASSERT_TRUE(driver_->tidy(Moment::closing));
  EXPECT_EQ(mark(), before) << "the log was copied back";
  write("INSERT INTO t VALUES (3)");
  EXPECT_EQ(mark(), before);
}

TEST_F(ForeignChangesTest, AnotherProgramTakesTheMarkAwayUntilWeWriteAgain) {
  write("CREATE TABLE t (a BIGINT)");
  const auto before = mark();
  ASSERT_TRUE(before);
  OtherProgram other(dir_.file("ledger.db"));
  other.ask("SELECT * FROM t");
  EXPECT_EQ(mark(), before) << "it has only read";
  other.run("INSERT INTO t VALUES (1)");
  EXPECT_FALSE(mark());
  write("INSERT INTO t VALUES (2)");
  ASSERT_TRUE(mark());
  EXPECT_NE(mark(), before);
}

TEST_F(ForeignChangesTest, ADatabaseInMemoryHasNoMark) {
  EXPECT_FALSE(in_memory()->foreign_changes()->mark());
}

}  // namespace
}  // namespace clawdforge
