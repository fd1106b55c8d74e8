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

TEST(ByteBudget, BytesGoFromOneHoldToAnotherWithoutBeingCountedAgain) {
  Budgeted all;
  ByteHold line = all.budget.open("app");
  ASSERT_EQ(line.resize(45), Fit::fits);
  ByteHold event = line.split(40);
  EXPECT_EQ(event.bytes(), 40U);
  EXPECT_EQ(line.bytes(), 5U);
  ByteHold journal = all.budget.open("app");
  journal.take_over(event);
  EXPECT_EQ(journal.bytes(), 40U);
  EXPECT_EQ(event.bytes(), 0U);
  EXPECT_EQ(all.budget.held_by("app"), 45U);
  EXPECT_EQ(journal.split(100).bytes(), 40U) << "no more than there is; and given back at once";
  EXPECT_EQ(all.budget.held_by("app"), 5U);
  EXPECT_TRUE(journal.could_hold(50));
  EXPECT_FALSE(journal.could_hold(51));
  ByteHold none;
  EXPECT_TRUE(none.could_hold(1000));
  EXPECT_EQ(none.split(7).bytes(), 0U);
  none.take_over(line);
  EXPECT_EQ(none.bytes(), 5U);
}

TEST(ByteBudget, OneHoldOfEachOwnerMayGrow) {
  Budgeted all;
  ByteHold first = all.budget.open("app");
  ByteHold second = all.budget.open("app");
  ByteHold other = all.budget.open("other");
  EXPECT_TRUE(first.claim_growth());
  EXPECT_TRUE(first.claim_growth()) << "it has the right already";
  EXPECT_FALSE(second.claim_growth());
  EXPECT_TRUE(other.claim_growth());
  ByteHold moved = std::move(first);
  EXPECT_FALSE(second.claim_growth());
  moved = ByteHold();
  EXPECT_TRUE(second.claim_growth());
  second.end_growth();
  EXPECT_TRUE(all.budget.open("app").claim_growth());
  EXPECT_TRUE(all.budget.open("app").claim_growth()) << "it ends with the hold";
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
