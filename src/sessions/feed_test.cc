#include "sessions/feed.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

SharedBlock block(std::int64_t first, std::int64_t last, std::size_t bytes = 10) {
  return std::make_shared<const JournalBlock>(JournalBlock{.first_event_id = first,
                                                           .last_event_id = last,
                                                           .turn_index = 1,
                                                           .at = {},
                                                           .lines = std::string(bytes, 'x')});
}

class FeedTest : public ::testing::Test {
 protected:
  // The first numbers of the blocks behind `after`.
  std::vector<std::int64_t> behind(std::int64_t after, std::size_t bytes_max = 1000) const {
    std::vector<std::int64_t> firsts;
    const auto blocks = feed_.behind(after, bytes_max);
    if (!blocks) return {-1};
    for (const SharedBlock& found : *blocks) firsts.push_back(found->first_event_id);
    return firsts;
  }

  IoContext io_{1};
  Timer timer_{io_.get_executor()};
  Feed feed_{4, 25};
};

TEST_F(FeedTest, KeepsNothingWhileNobodyListens) {
  feed_.publish({block(5, 6)});
  EXPECT_EQ(feed_.last_event_id(), 6);
  EXPECT_EQ(feed_.bytes_published(), 10u);
  EXPECT_EQ(behind(4), std::vector<std::int64_t>{-1});
}

TEST_F(FeedTest, HasWhatComesBehindANumber) {
  const auto listener = feed_.listen(timer_);
  EXPECT_TRUE(feed_.has_listeners());
  feed_.publish({block(5, 6), block(7, 9)});
  EXPECT_EQ(behind(3), std::vector<std::int64_t>{-1}) << "that is further back";
  EXPECT_EQ(behind(4), (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(behind(5), (std::vector<std::int64_t>{5, 7})) << "a block is not cut";
  EXPECT_EQ(behind(6), std::vector<std::int64_t>{7});
  EXPECT_EQ(behind(8), std::vector<std::int64_t>{7});
  EXPECT_EQ(behind(4, 19), std::vector<std::int64_t>{5}) << "no more than wanted";
  EXPECT_EQ(behind(4, 1), std::vector<std::int64_t>{5}) << "but for one block";
  feed_.stop_listening(listener);
  EXPECT_EQ(behind(6), std::vector<std::int64_t>{-1}) << "nobody listens any more";
}

TEST_F(FeedTest, StaysWithinItsBoundButForOneBlock) {
  const auto listener = feed_.listen(timer_);
  feed_.publish({block(5, 5), block(6, 6), block(7, 7)});
  EXPECT_EQ(behind(4), std::vector<std::int64_t>{-1});
  EXPECT_EQ(behind(5), (std::vector<std::int64_t>{6, 7}));
  feed_.publish({block(8, 8, 1000)});
  EXPECT_EQ(behind(6), std::vector<std::int64_t>{-1});
  EXPECT_EQ(behind(7), std::vector<std::int64_t>{8});
  feed_.stop_listening(listener);
}

TEST_F(FeedTest, WakesThoseWhoListen) {
  Timer other(io_.get_executor());
  int woken = 0;
  const auto wait = [&](Timer& timer) {
    timer.expires_at(Timer::time_point::max());
    timer.async_wait([&](boost::system::error_code) { ++woken; });
  };
  const auto first = feed_.listen(timer_);
  const auto second = feed_.listen(other);
  wait(timer_);
  wait(other);
  feed_.publish({block(5, 5)});
  io_.poll();
  EXPECT_EQ(woken, 2);
  feed_.stop_listening(second);
  io_.restart();
  wait(timer_);
  wait(other);
  feed_.poke();
  io_.poll();
  EXPECT_EQ(woken, 3);
  EXPECT_EQ(feed_.pokes(), 1u);
  io_.restart();
  wait(timer_);
  feed_.end(FeedEnd::closed);
  io_.poll();
  EXPECT_EQ(woken, 4);
  feed_.stop_listening(first);
}

TEST_F(FeedTest, EndsForOneReason) {
  EXPECT_EQ(feed_.ended(), FeedEnd::none);
  feed_.end(FeedEnd::shutdown);
  feed_.end(FeedEnd::closed);
  EXPECT_EQ(feed_.ended(), FeedEnd::shutdown);
}

}  // namespace
}  // namespace clawdforge
