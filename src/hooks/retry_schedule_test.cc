#include "hooks/retry_schedule.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(RetrySchedule, GrowsAndThenGoesOnByTheHourForADay) {
  const RetrySchedule schedule{
      .pauses = {seconds(5), seconds(30), seconds(120), seconds(600), seconds(3'600)},
      .give_up_after = hours(24)};
  const TimePoint begun(hours(500'000));
  TimePoint now = begun;
  std::vector<std::int64_t> pauses;
  std::int64_t attempts = 1;
  for (; attempts < 100; ++attempts) {
    const auto next = schedule.next(attempts, begun, now);
    if (!next) break;
    pauses.push_back(std::chrono::duration_cast<seconds>(*next - now).count());
    now = *next;
  }
  ASSERT_EQ(pauses.size(), 27u);
  EXPECT_EQ(std::vector(pauses.begin(), pauses.begin() + 6),
            (std::vector<std::int64_t>{5, 30, 120, 600, 3'600, 3'600}));
  EXPECT_EQ(pauses.back(), 3'600);
  EXPECT_LE(now, begun + hours(24));
  EXPECT_GT(now + hours(1), begun + hours(24));
}

TEST(RetrySchedule, IsOverWhenTheClockWasSetFarAhead) {
  const RetrySchedule schedule{.pauses = {seconds(5)}, .give_up_after = hours(24)};
  EXPECT_FALSE(schedule.next(1, TimePoint(hours(1)), TimePoint(hours(100))));
  EXPECT_TRUE(schedule.next(1, TimePoint(hours(100)), TimePoint(hours(1)))) << "or back";
}

}  // namespace
}  // namespace clawdforge
