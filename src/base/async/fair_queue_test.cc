#include "base/async/fair_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace clawdforge {
namespace {

using Queue = FairQueue<std::string>;

constexpr FairQueueLimits kWide{.jobs_max = 1'000, .lane_jobs_max = 1'000, .batch_max = 1'000};

bool put(Queue& queue, const std::string& lane, std::string job) {
  return queue.put(Lane(AppName(lane)), std::move(job));
}

std::string joined(const std::vector<std::string>& jobs) {
  std::string all;
  for (const std::string& job : jobs) all += job + " ";
  return all;
}

TEST(FairQueue, GivesOneOfEachLaneInTurn) {
  Queue queue(kWide);
  for (const char* job : {"a1", "a2", "a3", "b1", "c1", "b2"}) {
    ASSERT_TRUE(put(queue, std::string(job, 1), job));
  }
  EXPECT_EQ(queue.size(), 6u);
  EXPECT_EQ(joined(queue.take()), "a1 b1 c1 a2 b2 a3 ");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, GoesOnWithTheNextLaneInTheNextBatch) {
  Queue queue({.jobs_max = 10, .lane_jobs_max = 10, .batch_max = 2});
  for (const char* job : {"a1", "a2", "a3", "b1", "c1"}) {
    ASSERT_TRUE(put(queue, std::string(job, 1), job));
  }
  EXPECT_EQ(joined(queue.take()), "a1 b1 ");
  ASSERT_TRUE(put(queue, "b", "b2"));
  EXPECT_EQ(joined(queue.take()), "c1 a2 ");
  EXPECT_EQ(joined(queue.take()), "b2 a3 ");
}

TEST(FairQueue, IsBoundedForEachLaneAndForAllAppsTogether) {
  Queue queue({.jobs_max = 4, .lane_jobs_max = 3, .batch_max = 10});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(put(queue, "a", "a"));
  std::string refused = "a4";
  EXPECT_FALSE(queue.put(Lane(AppName("a")), std::move(refused)));
  EXPECT_EQ(refused, "a4") << "what is refused stays with the caller";
  EXPECT_TRUE(put(queue, "b", "b"));
  EXPECT_FALSE(put(queue, "c", "c"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(put(queue, "", "own"));
  EXPECT_FALSE(put(queue, "", "own"));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue.put_always(Lane(AppName("c")), "always"));
  EXPECT_FALSE(put(queue, "c", "c")) << "what must not be refused makes no room for others";
  EXPECT_EQ(queue.take().size(), 10u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(put(queue, "c", "c")) << "there is room again";
}

TEST(FairQueue, AfterCloseItGivesWhatIsInsideAndTakesNothing) {
  Queue queue(kWide);
  ASSERT_TRUE(put(queue, "a", "a1"));
  queue.close();
  EXPECT_FALSE(put(queue, "a", "a2"));
  EXPECT_FALSE(queue.put_always(Lane(AppName("a")), "a3"));
  EXPECT_EQ(joined(queue.take()), "a1 ");
  EXPECT_TRUE(queue.take().empty());
}

// Whatever is put: each lane's order holds, nothing is lost, and no lane gets a second job while
// another one waits for its first since then.
RC_GTEST_PROP(FairQueueProperty, KeepsTheOrderOfLanesAndTakesTurns,
              (const std::vector<std::uint8_t>& puts, std::uint8_t batch)) {
  constexpr int kLanes = 4;
  FairQueue<std::pair<int, int>> queue(
      {.jobs_max = 1'000'000, .lane_jobs_max = 1'000'000, .batch_max = 1u + batch % 7});
  std::map<int, int> given;
  std::map<int, int> left;
  for (const std::uint8_t choice : puts) {
    const int lane = choice % kLanes;
    const bool is_own = lane == 0;
    RC_ASSERT(queue.put(is_own ? Lane() : Lane(AppName(std::to_string(lane))),
                        std::pair(lane, given[lane]++)));
    ++left[lane];
  }
  std::map<int, int> taken;
  while (queue.size() > 0) {
    for (const auto& [lane, number] : queue.take()) {
      RC_ASSERT(number == taken[lane]++);
      --left[lane];
      for (const auto& [other, count] : left) {
        RC_ASSERT(count == 0 || taken[lane] <= taken[other] + 1);
      }
    }
  }
  for (const auto& [lane, count] : given) RC_ASSERT(taken[lane] == count);
}

}  // namespace
}  // namespace clawdforge
