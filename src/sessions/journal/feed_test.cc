#include "sessions/journal/feed.h"

#include <gtest/gtest.h>

#include "base/async/task_group.h"

namespace clawdforge {
namespace {

JournalBlock block(std::int64_t first, std::int64_t last, std::size_t bytes = 10) {
  return {.first_event_id = first,
          .last_event_id = last,
          .turn_index = 1,
          .at = {},
          .lines = std::string(bytes, 'x')};
}

class FeedTest : public ::testing::Test {
 protected:
  // The first numbers of the blocks after `event_id`.
  std::vector<std::int64_t> after(std::int64_t event_id, std::size_t bytes_max = 1000) const {
    std::vector<std::int64_t> firsts;
    const auto blocks = feed_.blocks_after(event_id, bytes_max);
    if (!blocks) return {-1};
    for (const SharedBlock& found : *blocks) firsts.push_back(found->first_event_id);
    return firsts;
  }

  IoContext io_{1};
  Metrics metrics_;
  ByteBudget budget_{{.bytes_max = 400'000, .share_bytes_max = 150'000}, metrics_};
  ByteHold memory_ = budget_.open("app");
  Feed feed_{4, 25};
};

TEST_F(FeedTest, KeepsNothingWithoutAListener) {
  feed_.publish({block(5, 6)}, memory_);
  EXPECT_EQ(feed_.last_event_id(), 6);
  EXPECT_EQ(feed_.bytes_published(), 10u);
  EXPECT_EQ(after(4), std::vector<std::int64_t>{-1});
}

TEST_F(FeedTest, HasWhatComesBehindANumber) {
  feed_.add_listener();
  EXPECT_EQ(feed_.listeners(), 1u);
  feed_.publish({block(5, 6), block(7, 9)}, memory_);
  EXPECT_EQ(after(3), std::vector<std::int64_t>{-1}) << "that is further back";
  EXPECT_EQ(after(4), (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(after(5), (std::vector<std::int64_t>{5, 7})) << "a block is not cut";
  EXPECT_EQ(after(6), std::vector<std::int64_t>{7});
  EXPECT_EQ(after(8), std::vector<std::int64_t>{7});
  EXPECT_EQ(after(4, 19), std::vector<std::int64_t>{5}) << "no more than wanted";
  EXPECT_EQ(after(4, 1), std::vector<std::int64_t>{5}) << "but for one block";
  feed_.remove_listener();
  EXPECT_EQ(after(6), std::vector<std::int64_t>{-1}) << "it has no listener any more";
}

TEST_F(FeedTest, StaysWithinItsBoundButForOneBlock) {
  feed_.add_listener();
  feed_.publish({block(5, 5), block(6, 6), block(7, 7)}, memory_);
  EXPECT_EQ(after(4), std::vector<std::int64_t>{-1});
  EXPECT_EQ(after(5), (std::vector<std::int64_t>{6, 7}));
  feed_.publish({block(8, 8, 1000)}, memory_);
  EXPECT_EQ(after(6), std::vector<std::int64_t>{-1});
  EXPECT_EQ(after(7), std::vector<std::int64_t>{8});
  feed_.remove_listener();
}

TEST_F(FeedTest, ALargeBlockIsCountedOnceForAsLongAsAnyoneHasIt) {
  feed_.add_listener();
  ASSERT_EQ(memory_.resize(100'000), Fit::fits);
  feed_.publish({block(5, 5, 100'000)}, memory_);
  EXPECT_EQ(memory_.bytes(), 0u) << "it went over to the block";
  EXPECT_EQ(budget_.held(), 100'000u);
  EXPECT_TRUE(feed_.is_overfull());
  auto reader = feed_.blocks_after(4, 1000);
  feed_.let_large_go();
  EXPECT_EQ(feed_.ring_bytes(), 0u);
  EXPECT_EQ(budget_.held(), 100'000u) << "one reader has it";
  EXPECT_EQ(after(4), std::vector<std::int64_t>{5}) << "and others may share it";
  reader.reset();
  EXPECT_EQ(budget_.held(), 0u);
  EXPECT_EQ(after(4), std::vector<std::int64_t>{-1}) << "then the ledger has it";
  feed_.remove_listener();
}

TEST_F(FeedTest, ABlockWithoutAPlaceInMemoryIsNotShared) {
  feed_.add_listener();
  feed_.publish({block(5, 5, 100'000)}, memory_);
  const auto stalled = feed_.blocks_after(4, 1000);
  feed_.publish({block(6, 6, 100'000)}, memory_);
  const auto another = feed_.blocks_after(5, 1000);
  EXPECT_EQ(feed_.unshared_until(), 0);
  feed_.publish({block(7, 7, 100'000)}, memory_);
  EXPECT_EQ(feed_.unshared_until(), 7);
  EXPECT_EQ(feed_.last_event_id(), 7);
  EXPECT_EQ(after(6), std::vector<std::int64_t>{-1});
  EXPECT_EQ(budget_.held(), 200'000u);
  feed_.publish({block(8, 8)}, memory_);
  EXPECT_EQ(after(7), std::vector<std::int64_t>{8}) << "small ones are not counted";
  feed_.remove_listener();
}

TEST_F(FeedTest, WakesThoseWhoListen) {
  TaskGroup tasks(io_.get_executor());
  int woken = 0;
  const auto wait = [](Feed* feed, int* count) -> Task<void> {
    if (co_await feed->change(Signal::Deadline::max())) ++*count;
  };
  const auto after = [&](auto change) {
    tasks.spawn(wait(&feed_, &woken));
    tasks.spawn(wait(&feed_, &woken));
    io_.restart();
    io_.poll();
    change();
    io_.poll();
    return std::exchange(woken, 0);
  };
  EXPECT_EQ(after([&] { feed_.publish({block(5, 5)}, memory_); }), 2);
  EXPECT_EQ(after([&] { feed_.poke(); }), 2);
  EXPECT_EQ(feed_.pokes(), 1u);
  EXPECT_EQ(after([&] { feed_.end(FeedEnd::closed); }), 2);
}

TEST_F(FeedTest, EndsForOneReason) {
  EXPECT_EQ(feed_.ended(), FeedEnd::none);
  feed_.end(FeedEnd::shutdown);
  feed_.end(FeedEnd::closed);
  EXPECT_EQ(feed_.ended(), FeedEnd::shutdown);
}

}  // namespace
}  // namespace clawdforge
