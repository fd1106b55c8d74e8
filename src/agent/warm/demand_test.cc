#include "agent/warm/demand.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Demand::Time kBegin{minutes(1'000)};

TEST(DemandTest, NothingIsWantedBeforeTheFirstStart) {
  const Demand demand;
  EXPECT_EQ(demand.wanted(kBegin), 0U);
  EXPECT_FALSE(demand.last_use());
}

TEST(DemandTest, StartsOneAfterTheOtherNeedOne) {
  Demand demand;
  for (int i = 0; i < 20; ++i) demand.note(kBegin + i * seconds(2));
  EXPECT_EQ(demand.wanted(kBegin + seconds(40)), 1U);
}

TEST(DemandTest, StartsTogetherNeedAsMany) {
  Demand demand;
  for (int i = 0; i < 5; ++i) demand.note(kBegin + i * milliseconds(100));
  EXPECT_EQ(demand.wanted(kBegin + seconds(1)), 5U);
  demand.note(kBegin + seconds(30));
  EXPECT_EQ(demand.wanted(kBegin + seconds(31)), 5U);
}

TEST(DemandTest, TheBusiestMomentCountsForTenMinutes) {
  Demand demand;
  for (int i = 0; i < 3; ++i) demand.note(kBegin);
  for (int minute = 1; minute <= 9; ++minute) demand.note(kBegin + minutes(minute));
  EXPECT_EQ(demand.wanted(kBegin + minutes(9)), 3U);
  EXPECT_EQ(demand.wanted(kBegin + minutes(10)), 1U);
}

TEST(DemandTest, WithoutUseForTenMinutesNothingIsWanted) {
  Demand demand;
  demand.note(kBegin + seconds(59));
  EXPECT_EQ(demand.wanted(kBegin + seconds(59) + kDemandKept - milliseconds(1)), 1U);
  EXPECT_EQ(demand.wanted(kBegin + seconds(59) + kDemandKept), 0U);
  demand.note(kBegin + minutes(60));
  EXPECT_EQ(demand.wanted(kBegin + minutes(60)), 1U);
}

TEST(DemandTest, ItsMemoryIsBounded) {
  Demand demand;
  for (int i = 0; i < 10'000; ++i) demand.note(kBegin);
  EXPECT_EQ(demand.wanted(kBegin), kStartsCountedMax);
}

}  // namespace
}  // namespace clawdforge
