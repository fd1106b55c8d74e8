#include "base/ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace clawdforge {
namespace {

TEST(RandomIds, SortByTimeAlsoWithinOneMillisecond) {
  ManualClock clock(TimePoint(std::chrono::milliseconds(1'700'000'000'000)));
  RandomIds ids(clock);
  std::string last;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = ids.uuid();
    ASSERT_EQ(id.size(), 36u);
    ASSERT_LT(last, id);
    last = id;
  }
}

TEST(RandomIds, KeepTheirOrderWhenTheClockStepsBack) {
  ManualClock clock(TimePoint(std::chrono::milliseconds(1'700'000'000'000)));
  RandomIds ids(clock);
  const std::string before = ids.uuid();
  clock.advance(-std::chrono::hours(1));
  EXPECT_LT(before, ids.uuid());
}

TEST(RandomIds, AreVersionSevenUuids) {
  const SystemClock clock;
  RandomIds ids(clock);
  const std::string id = ids.uuid();
  EXPECT_EQ(id[14], '7');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
}

TEST(RandomIds, TokensAreLongUrlSafeAndNeverTheSame) {
  const SystemClock clock;
  RandomIds ids(clock);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const Secret token = ids.token("cf_");
    const std::string text(token.reveal());
    EXPECT_EQ(text.size(), 3u + 43u);
    EXPECT_TRUE(std::ranges::all_of(
        text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; }));
    EXPECT_TRUE(seen.insert(text).second);
  }
}

}  // namespace
}  // namespace clawdforge
