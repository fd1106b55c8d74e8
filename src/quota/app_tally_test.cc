#include "quota/app_tally.h"

#include <gtest/gtest.h>

#include <vector>

namespace clawdforge {
namespace {

TEST(AppTally, GivesSharesUpToTheMostAndEachAppItsOwn) {
  AppTally tally;
  const auto first = tally.take(AppName("a"), 2);
  auto second = tally.take(AppName("a"), 2);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(tally.take(AppName("a"), 2));
  EXPECT_TRUE(tally.take(AppName("b"), 2));
  second.reset();
  EXPECT_TRUE(tally.take(AppName("a"), 2));
}

TEST(AppTally, WithoutAMostItOnlyCounts) {
  AppTally tally;
  std::vector<std::optional<AppShare>> shares;
  for (int i = 0; i < 100; ++i) shares.push_back(tally.take(AppName("a"), std::nullopt));
  EXPECT_EQ(tally.held_by(AppName("a")), 100);
  shares.clear();
  EXPECT_EQ(tally.held_by(AppName("a")), 0);
}

TEST(AppTally, AShareThatIsMovedIsGivenBackOnce) {
  AppTally tally;
  auto taken = tally.take(AppName("a"), 1);
  {
    const AppShare moved = std::move(*taken);
    taken.reset();
    EXPECT_EQ(tally.held_by(AppName("a")), 1);
  }
  EXPECT_EQ(tally.held_by(AppName("a")), 0);
}

}  // namespace
}  // namespace clawdforge
