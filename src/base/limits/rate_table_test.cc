#include "base/limits/rate_table.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RateTable::Rate kRequests{.per_second = 10, .burst = 20};
constexpr RateTable::Rate kBytes{.per_second = 100, .burst = 400};
const RateTable::Time kBegin = RateTable::Time() + std::chrono::hours(1);

// How many of `count` requests at one instant pass.
int passed(RateTable& table, std::uint64_t key, int count, RateTable::Time now, double weight = 1) {
  int passes = 0;
  for (int i = 0; i < count; ++i) passes += table.take(key, weight, now) == seconds(0) ? 1 : 0;
  return passes;
}

TEST(RateTable, GivesABurstAndThenItsRate) {
  RateTable table(kRequests, kBytes);
  EXPECT_EQ(passed(table, 1, 100, kBegin), 20);
  EXPECT_EQ(table.take(1, 1, kBegin), seconds(1)) << "to wait";
  EXPECT_EQ(passed(table, 1, 100, kBegin + milliseconds(500)), 5);
  EXPECT_EQ(passed(table, 1, 100, kBegin + milliseconds(1500)), 10);
  EXPECT_EQ(passed(table, 1, 100, kBegin + seconds(100)), 20) << "never more than a burst";
}

TEST(RateTable, CountsEachKeyForItself) {
  RateTable table(kRequests, kBytes);
  EXPECT_EQ(passed(table, 1, 100, kBegin), 20);
  EXPECT_EQ(passed(table, 2, 100, kBegin), 20);
  EXPECT_EQ(passed(table, 3, 1000, kBegin, 0.125), 160) << "many callers behind one key";
}

TEST(RateTable, MakesAKeyWaitForBytesThatCameTooFast) {
  RateTable table(kRequests, kBytes);
  table.add_bytes(1, 400, kBegin);
  EXPECT_EQ(table.take(1, 1, kBegin), seconds(0));
  table.add_bytes(1, 350, kBegin);
  EXPECT_EQ(table.take(1, 1, kBegin), seconds(4));
  EXPECT_EQ(table.take(1, 1, kBegin + seconds(4)), seconds(0));
}

TEST(RateTable, ForgetsTheQuietestWhenTooManyComeAndKeepsALoudOne) {
  RateTable table(kRequests, kBytes);
  RateTable::Time now = kBegin;
  EXPECT_EQ(passed(table, 1, 100, now), 20);
  for (std::uint64_t other = 2; other < 100'000; ++other) {
    now += std::chrono::microseconds(1);
    EXPECT_EQ(table.take(other, 1, now), seconds(0));
    if (other % 100 == 0) passed(table, 1, 1, now);
  }
  EXPECT_EQ(passed(table, 1, 100, now), 0) << "it was there all the time";
}

TEST(ByteMeter, CountsForEachOfItsKeys) {
  RateTable apps(kRequests, kBytes);
  RateTable addresses(kRequests, kBytes);
  ByteMeter meter;
  meter.add(1'000'000, kBegin);  // for nothing
  meter.count_for(addresses, 7, 0.5);
  meter.count_for(apps, 8, 1);
  meter.add(700, kBegin);
  EXPECT_EQ(addresses.take(7, 1, kBegin), seconds(0));
  EXPECT_EQ(apps.take(8, 1, kBegin), seconds(3));
}

}  // namespace
}  // namespace clawdforge
