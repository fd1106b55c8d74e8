#include "quota/pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace clawdforge {
namespace {

struct PoolTest : ::testing::Test {
  Pool make(std::size_t slots, std::size_t waiting) {
    return Pool({slots, waiting}, running, waiting_gauge);
  }

  IoContext io{1};
  Gauge running;
  Gauge waiting_gauge;
};

TEST_F(PoolTest, GrantsAtOnceWhileThereIsRoomAndThenInOrder) {
  Pool pool = make(2, 8);
  auto first = pool.enter(AppName("a"));
  auto second = pool.enter(AppName("a"));
  auto third = pool.enter(AppName("a"));
  auto fourth = pool.enter(AppName("a"));
  EXPECT_TRUE((*first)->is_granted());
  EXPECT_TRUE((*second)->is_granted());
  EXPECT_FALSE((*third)->is_granted());
  EXPECT_EQ(running.value(), 2);
  EXPECT_EQ(waiting_gauge.value(), 2);
  second->reset();
  EXPECT_TRUE((*third)->is_granted());
  EXPECT_FALSE((*fourth)->is_granted());
}

TEST_F(PoolTest, APlaceThatIsBeingCleanedUpIsWaitedForAlsoWithoutAQueue) {
  Pool pool = make(1, 0);
  auto first = pool.enter(AppName("a"));
  EXPECT_FALSE(pool.enter(AppName("a")));
  (*first)->expect_end();
  (*first)->expect_end();
  auto second = pool.enter(AppName("a"));
  ASSERT_TRUE(second);
  EXPECT_FALSE((*second)->is_granted());
  EXPECT_FALSE(pool.enter(AppName("b"))) << "one for each such place";
  first = std::unexpected(Failure{});
  EXPECT_TRUE((*second)->is_granted());
  EXPECT_FALSE(pool.enter(AppName("b")));
}

TEST_F(PoolTest, AnAppAloneGetsAllAndAPartWhileOthersAsk) {
  Pool pool({.slots_max = 8,
             .waiting_max = 64,
             .shared_slots_max = 4,
             .others_ask_for = std::chrono::hours(1)},
            running, waiting_gauge);
  std::deque<std::unique_ptr<Slot>> greedy;
  const auto add = [&] { greedy.push_back(std::move(*pool.enter(AppName("greedy")))); };
  for (int i = 0; i < 12; ++i) add();
  EXPECT_EQ(pool.running(), 8u) << "it is alone";
  auto other = pool.enter(AppName("other"));
  EXPECT_FALSE((*other)->is_granted());
  greedy.pop_front();
  EXPECT_TRUE((*other)->is_granted());
  for (int i = 0; i < 3; ++i) greedy.pop_front();
  EXPECT_EQ(pool.running(), 5u) << "it keeps what it has, and gets no more than its part";
  greedy.pop_front();
  EXPECT_EQ(pool.running(), 5u) << "its next one, in the place of its last";
  auto second = pool.enter(AppName("other"));
  EXPECT_TRUE((*second)->is_granted()) << "what is left is for the others";
}

TEST_F(PoolTest, AnAppGetsAllAgainWhenOthersHaveAskedNoMore) {
  Pool pool({.slots_max = 8,
             .waiting_max = 64,
             .shared_slots_max = 4,
             .others_ask_for = std::chrono::milliseconds(0)},
            running, waiting_gauge);
  auto other = pool.enter(AppName("other"));
  std::deque<std::unique_ptr<Slot>> greedy;
  for (int i = 0; i < 7; ++i) greedy.push_back(std::move(*pool.enter(AppName("greedy"))));
  EXPECT_EQ(pool.running(), 8u);
}

TEST_F(PoolTest, AnAppWithManyWaitingDelaysAnotherAppsFirstByNoMoreThanOneRun) {
  Pool pool = make(2, 64);
  std::deque<std::unique_ptr<Slot>> greedy;
  for (int i = 0; i < 52; ++i) greedy.push_back(std::move(*pool.enter(AppName("greedy"))));
  auto modest = pool.enter(AppName("modest"));
  EXPECT_FALSE((*modest)->is_granted());
  greedy.pop_front();
  EXPECT_TRUE((*modest)->is_granted());
}

TEST_F(PoolTest, TwoAppsTakeTurnsOnOnePlaceAlsoWhenOneComesBackEachTime) {
  Pool pool = make(1, 64);
  std::vector<std::unique_ptr<Slot>> greedy;
  for (int i = 0; i < 4; ++i) greedy.push_back(std::move(*pool.enter(AppName("greedy"))));
  auto modest = std::move(*pool.enter(AppName("modest")));
  greedy[0].reset();
  ASSERT_TRUE(modest->is_granted());
  auto again = std::move(*pool.enter(AppName("modest")));
  modest.reset();
  EXPECT_TRUE(greedy[1]->is_granted());
  EXPECT_FALSE(again->is_granted());
  greedy[1].reset();
  EXPECT_TRUE(again->is_granted());
}

TEST_F(PoolTest, AFullQueueRefusesTheAppThatFilledIt) {
  Pool pool = make(1, 2);
  auto runs = pool.enter(AppName("a"));
  auto waits = pool.enter(AppName("a"));
  auto waits_too = pool.enter(AppName("a"));
  auto refused = pool.enter(AppName("a"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "queue_full");
  EXPECT_EQ(refused.error().kind, Errc::unavailable);
  EXPECT_GT(refused.error().retry_after.count(), 0);
}

TEST_F(PoolTest, AFullQueueMakesRoomForAnAppThatHasLess) {
  Pool pool = make(1, 2);
  auto runs = pool.enter(AppName("greedy"));
  auto waits = pool.enter(AppName("greedy"));
  auto newest = pool.enter(AppName("greedy"));
  auto modest = pool.enter(AppName("modest"));
  ASSERT_TRUE(modest);
  EXPECT_TRUE((*newest)->is_displaced());
  EXPECT_FALSE((*waits)->is_displaced());
  EXPECT_EQ(pool.waiting(), 2u);
  auto third_app = pool.enter(AppName("third"));
  EXPECT_FALSE(third_app) << "one each is fair: none is displaced for it";
}

TEST_F(PoolTest, WithoutAQueueNoneWaits) {
  Pool pool = make(1, 0);
  auto runs = pool.enter(AppName("a"));
  EXPECT_TRUE((*runs)->is_granted());
  EXPECT_FALSE(pool.enter(AppName("b")));
}

TEST_F(PoolTest, WithdrawingFreesThePlaceInTheQueueButNotAGrantedOne) {
  Pool pool = make(1, 1);
  auto runs = std::move(*pool.enter(AppName("a")));
  auto waits = std::move(*pool.enter(AppName("a")));
  waits->withdraw();
  EXPECT_EQ(pool.waiting(), 0u);
  auto next = std::move(*pool.enter(AppName("a")));
  runs->withdraw();
  EXPECT_TRUE(runs->is_granted());
  runs.reset();
  EXPECT_TRUE(next->is_granted());
  EXPECT_FALSE(waits->is_granted());
}

// Whatever comes and goes: never more than allowed, none forgotten, no place lost.
RC_GTEST_FIXTURE_PROP(PoolTest, KeepsItsBoundsAndLosesNoPlace, ()) {
  const auto slots = *rc::gen::inRange<std::size_t>(1, 4);
  const auto queue = *rc::gen::inRange<std::size_t>(0, 6);
  Pool pool = make(slots, queue);
  std::vector<std::unique_ptr<Slot>> held;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
  for (const int step : steps) {
    if (step % 3 != 0 || held.empty()) {
      auto slot = pool.enter(AppName(std::string(1, static_cast<char>('a' + step % 4))));
      if (slot) held.push_back(std::move(*slot));
    } else if (step % 2 == 0) {
      held.erase(held.begin() + step % static_cast<int>(held.size()));
    } else {
      held[static_cast<std::size_t>(step) % held.size()]->withdraw();
    }
    std::size_t granted = 0;
    for (const auto& slot : held) granted += slot->is_granted() ? 1 : 0;
    RC_ASSERT(granted == pool.running());
    RC_ASSERT(pool.running() <= slots);
    RC_ASSERT(pool.waiting() <= queue);
    RC_ASSERT(pool.waiting() == 0 || pool.running() == slots);
  }
  held.clear();
  RC_ASSERT(pool.running() == 0 && pool.waiting() == 0);
}

// Each app has 100 waiting; places are given back in the order in which they were given.
std::map<std::string, int> first_served(Pool& pool, const std::map<std::string, double>& weights,
                                        std::size_t served) {
  std::map<std::string, int> counts;
  std::deque<std::pair<std::string, std::unique_ptr<Slot>>> waiting;
  for (int ask = 0; ask < 100; ++ask) {
    for (const auto& [app, weight] : weights) {
      waiting.emplace_back(app, std::move(*pool.enter(AppName(app), weight)));
    }
  }
  for (std::size_t given = 0; given < served;) {
    const auto next =
        std::ranges::find_if(waiting, [](const auto& entry) { return entry.second->is_granted(); });
    ++counts[next->first];
    ++given;
    waiting.erase(next);
  }
  return counts;
}

TEST_F(PoolTest, PlacesGoToAppsByTheirWeights) {
  Pool pool = make(4, 1'000);
  const std::map<std::string, double> weights = {{"a", 1}, {"b", 1}, {"c", 2}, {"d", 4}, {"e", 8}};
  const auto counts = first_served(pool, weights, 100);
  for (const auto& [app, weight] : weights) {
    const double share = 100 * weight / 16;
    EXPECT_NEAR(counts.at(app), share, std::max(1.0, share / 10)) << app;
  }
}

TEST_F(PoolTest, AnAppThatComesLaterIsServedNextAndGetsNoCreditForThePast) {
  Pool pool = make(1, 100);
  auto holder = pool.enter(AppName("a"));
  std::deque<std::unique_ptr<Slot>> of_a;
  for (int ask = 0; ask < 10; ++ask) of_a.push_back(std::move(*pool.enter(AppName("a"))));
  for (int ask = 0; ask < 5; ++ask) {
    holder = std::move(of_a.front());
    of_a.pop_front();
  }
  auto first_of_b = pool.enter(AppName("b"));
  auto second_of_b = pool.enter(AppName("b"));
  holder->reset();
  EXPECT_TRUE((*first_of_b)->is_granted());
  first_of_b->reset();
  EXPECT_FALSE((*second_of_b)->is_granted()) << "a is next";
  EXPECT_TRUE(of_a.front()->is_granted());
}

TEST_F(PoolTest, WhileItIsHeldAllWaitAndTheRefusalSaysWhy) {
  Pool pool = make(1, 1);
  pool.hold(true);
  auto first = pool.enter(AppName("a"));
  auto second = pool.enter(AppName("a"));
  ASSERT_TRUE(first && second);
  EXPECT_FALSE((*first)->is_granted());
  const auto refused = pool.enter(AppName("a"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "memory_full");
  EXPECT_GT(refused.error().retry_after.count(), 0);
  pool.hold(false);
  EXPECT_TRUE((*first)->is_granted());
  EXPECT_FALSE((*second)->is_granted());
  EXPECT_EQ(pool.enter(AppName("a")).error().code, "queue_full");
}

}  // namespace
}  // namespace clawdforge
