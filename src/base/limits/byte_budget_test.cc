#include "base/limits/byte_budget.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace clawdforge {
namespace {

struct Budgeted {
  Metrics metrics;
  ByteBudget budget{{.bytes_max = 100, .share_bytes_max = 25}, metrics};
};

TEST(ByteBudget, BoundsAnOwnerAndGivesBackWhatIsDropped) {
  Budgeted all;
  {
    ByteHold first = all.budget.open("app");
    ByteHold second = all.budget.open("app");
    ByteHold third = all.budget.open("app");
    EXPECT_EQ(first.resize(13), Fit::fits);
    EXPECT_EQ(second.resize(13), Fit::fits);
    EXPECT_EQ(third.resize(1), Fit::over_share);
    EXPECT_EQ(third.bytes(), 0U) << "nothing has changed";
    EXPECT_EQ(all.budget.held_by("app"), 26U);
    EXPECT_EQ(first.resize(12), Fit::fits);
    EXPECT_EQ(third.resize(1), Fit::fits);
  }
  EXPECT_EQ(all.budget.held(), 0U);
  EXPECT_EQ(all.budget.held_by("app"), 0U);
}

TEST(ByteBudget, LetsOneLargeHoldExceedTheShareUpToHalfOfAll) {
  Budgeted all;
  ByteHold little = all.budget.open("app");
  EXPECT_EQ(little.resize(5), Fit::fits);
  ByteHold large = all.budget.open("app");
  EXPECT_EQ(large.resize(45), Fit::fits);
  EXPECT_EQ(large.resize(46), Fit::over_share);
  ByteHold more = all.budget.open("app");
  EXPECT_EQ(more.resize(1), Fit::over_share);
}

TEST(ByteBudget, BoundsAllOwnersTogether) {
  Budgeted all;
  std::vector<ByteHold> holds;
  for (const char* owner : {"a", "b", "c", "d"}) {
    holds.push_back(all.budget.open(owner));
    EXPECT_EQ(holds.back().resize(24), Fit::fits);
  }
  ByteHold last = all.budget.open("e");
  EXPECT_EQ(last.resize(5), Fit::over_budget);
  EXPECT_EQ(last.resize(4), Fit::fits);
  holds.clear();
  EXPECT_EQ(last.resize(50), Fit::fits);
  EXPECT_NE(all.metrics.render().find("clawdforge_memory_held_bytes 50"), std::string::npos);
  EXPECT_NE(all.metrics.render().find("clawdforge_memory_refused_total 1"), std::string::npos);
}

TEST(ByteBudget, LetsEverythingFitWhereThereIsNone) {
  ByteHold none;
  EXPECT_EQ(none.resize(std::size_t{1} << 40), Fit::fits);
}

TEST(ByteBudget, IsTheSumOfItsHoldsWhateverIsDone) {
  rc::check([](const std::vector<std::pair<unsigned char, unsigned char>>& steps) {
    Budgeted all;
    std::vector<ByteHold> holds;
    for (int i = 0; i < 8; ++i) holds.push_back(all.budget.open(std::string(1, char('a' + i / 2))));
    for (const auto& [which, bytes] : steps) {
      ByteHold& hold = holds[which % holds.size()];
      if (which % 5 == 0) {
        holds[bytes % holds.size()] = std::move(hold);
        hold = all.budget.open(std::string(1, char('a' + which % 4)));
      } else {
        static_cast<void>(hold.resize(bytes));
      }
      std::size_t sum = 0;
      for (const ByteHold& each : holds) sum += each.bytes();
      RC_ASSERT(all.budget.held() == sum);
      RC_ASSERT(sum <= 100U);
    }
  });
}

}  // namespace
}  // namespace clawdforge
