#include "upkeep/sweeper.h"

#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>

#include "base/async/task_group.h"
#include "upkeep/uploads_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

class SweeperTest : public UploadsFixture {
 protected:
  SweepReport tick() {
    const auto swept = run_to_end(io_, sweeper_.tick());
    EXPECT_TRUE(swept);
    return swept.value_or(SweepReport{});
  }

  Sweeper sweeper_{{io_.get_executor(), ledger_->uploads, ledger_->runs, ledger_->audit, files_,
                    clock_, log_, metrics_},
                   {1s, {}}};
};

TEST_F(SweeperTest, AnUploadGoesWhenItsTimeIsUpAndNotBefore) {
  upload("short", 60s);
  upload("long", 3'600s);
  clock_.advance(59s);
  EXPECT_EQ(tick().files_deleted, 0);
  EXPECT_EQ(files(), named({"short", "long"}));
  clock_.advance(1s);
  const SweepReport swept = tick();
  EXPECT_EQ(swept.files_deleted, 1);
  EXPECT_EQ(swept.soft_closed, 0);
  EXPECT_EQ(swept.hard_deleted, 0);
  EXPECT_EQ(swept.failed, 0);
  EXPECT_EQ(files(), named({"long"}));
  EXPECT_EQ(rows(), named({"long"}));
  EXPECT_EQ(tick().files_deleted, 0) << "once is enough";
}

TEST_F(SweeperTest, MoreThanAPageGoesInOneTick) {
  for (int i = 0; i < 1'001; ++i) upload(std::to_string(i), 60s, i % 100 == 0);
  upload("long", 3'600s);
  clock_.advance(60s);
  EXPECT_EQ(tick().files_deleted, 1'001);
  EXPECT_EQ(rows(), named({"long"}));
  EXPECT_EQ(files(), named({"long"}));
}

TEST_F(SweeperTest, AFileThatCannotBeRemovedKeepsItsRowAndStopsNothingElse) {
  upload("stuck", 60s, false);
  std::filesystem::create_directories(root_ + "/uploads/" + to_hex(sha256("stuck")));
  upload("other", 61s);
  clock_.advance(100s);
  const SweepReport first = tick();
  EXPECT_EQ(first.failed, 1);
  EXPECT_EQ(first.files_deleted, 1);
  EXPECT_EQ(rows(), named({"stuck"}));
  const SweepReport second = tick();
  EXPECT_EQ(second.failed, 1);
  EXPECT_EQ(second.files_deleted, 0);
  std::filesystem::remove(root_ + "/uploads/" + to_hex(sha256("stuck")));
  EXPECT_EQ(tick().files_deleted, 1) << "it is tried again";
  EXPECT_TRUE(rows().empty());
}

TEST_F(SweeperTest, ARowThatOutlivedItsFileGoesWithTheNextTick) {
  upload("gone", 60s, false);
  clock_.advance(60s);
  EXPECT_EQ(tick().files_deleted, 1);
  EXPECT_TRUE(rows().empty());
}

TEST_F(SweeperTest, TheLedgersRowsDecide) {
  upload("revoked", 3'600s);
  App app;
  app.name = AppName("app");
  app.token_digest = sha256("token");
  ASSERT_TRUE(run_to_end(io_, ledger_->apps.add(app)));
  ASSERT_TRUE(run_to_end(io_, ledger_->apps.remove(AppName("app"), clock_.now())));
  EXPECT_EQ(tick().files_deleted, 1);
  EXPECT_TRUE(files().empty());
}

TEST_F(SweeperTest, ALedgerThatFailsIsAnErrorAndKeepsTheFiles) {
  upload("short", 60s);
  clock_.advance(60s);
  ledger_->stop();
  const auto swept = run_to_end(io_, sweeper_.tick());
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code, "ledger_unavailable");
  EXPECT_EQ(files(), named({"short"}));
}

TEST_F(SweeperTest, TicksDoNotOverlapAndEachAskerGetsOneOfItsOwn) {
  upload("first", 60s);
  clock_.advance(60s);
  std::vector<std::int64_t> deleted;
  for (int i = 0; i < 5; ++i) {
    boost::asio::co_spawn(io_, sweeper_.tick(),
                          [&](std::exception_ptr thrown, Result<SweepReport> swept) {
                            ASSERT_FALSE(thrown);
                            deleted.push_back(swept.value().files_deleted);
                          });
  }
  io_.restart();
  io_.run();
  // Two that overlapped would both have seen the row and counted its file.
  EXPECT_EQ(deleted, (std::vector<std::int64_t>{1, 0, 0, 0, 0}));
  EXPECT_EQ(metrics_.counter("clawdforge_sweeps_total", "").value(), 5);
  EXPECT_EQ(metrics_.counter("clawdforge_swept_files_total", "").value(), 1);
}

TEST_F(SweeperTest, SweepsByItselfUntilItIsStopped) {
  upload("short", 60s);
  clock_.advance(60s);
  TaskGroup tasks(io_.get_executor());
  tasks.spawn(sweeper_.run());
  io_.restart();
  const Counter& sweeps = metrics_.counter("clawdforge_sweeps_total", "");
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (sweeps.value() < 2 && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
  sweeper_.stop();
  io_.run();
  EXPECT_EQ(tasks.size(), 0u);
  EXPECT_EQ(sweeps.value(), 2);
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace clawdforge
