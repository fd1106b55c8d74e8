#include "sessions/journal/event_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/async/async_tokens.h"
#include "sessions/journal/journal_fixture.h"

namespace clawdforge {
namespace {

constexpr std::size_t kRingBytes = 400;
constexpr std::chrono::milliseconds kNow{0};

class EventReaderTest : public JournalTest {
 protected:
  EventReaderTest() : JournalTest(kRingBytes) {}

  static Task<bool> pause(IoExecutor executor, std::chrono::milliseconds time) {
    Timer timer(executor);
    timer.expires_after(time);
    co_await timer.async_wait(kAwait);
    co_return true;
  }

  static std::string text_of(std::int64_t id, std::size_t size) {
    return fmt::format(R"("{}{}")", id, std::string(size, 'x'));
  }
  void append(std::size_t size = 1, std::int64_t turn_index = 1) {
    sizes_.push_back(size);
    journal_->append(turn_index, EventKind::update,
                     text_of(static_cast<std::int64_t>(sizes_.size()), size));
  }
  void commit() { ASSERT_TRUE(house_.await(journal_->committed())); }

  std::unique_ptr<EventReader> reader(std::int64_t after, bool is_tail = true,
                                      std::size_t behind_bytes_max = kRingBytes) {
    return std::make_unique<EventReader>(house_.ledger->journal, feed_, SessionId("s"), after,
                                         behind_bytes_max, is_tail);
  }
  EventPiece next(EventReader& reader, std::chrono::milliseconds time = kNow) {
    auto piece = house_.await(reader.next(time));
    EXPECT_TRUE(piece);
    return piece.value_or(EventPiece{});
  }
  // What is new in a piece, by number; each must be what was appended.
  std::vector<std::int64_t> news(const EventPiece& piece) {
    std::vector<std::int64_t> ids;
    for (const SharedBlock& block : piece.blocks) {
      std::istringstream lines(block->lines);
      for (std::string line; std::getline(lines, line);) {
        const auto event = event_in(line);
        EXPECT_TRUE(event) << line;
        if (!event || event->id <= piece.after) continue;
        EXPECT_EQ(event->json,
                  text_of(event->id, sizes_.at(static_cast<std::size_t>(event->id) - 1)));
        ids.push_back(event->id);
      }
    }
    return ids;
  }

  std::vector<std::size_t> sizes_;  // of the events, by their numbers
};

using Ids = std::vector<std::int64_t>;

TEST_F(EventReaderTest, GoesFromTheJournalToWhatComes) {
  append();
  append();
  commit();
  const auto all = reader(0);
  const auto some = reader(1);
  EXPECT_EQ(news(next(*all)), (Ids{1, 2}));
  EXPECT_EQ(news(next(*some)), Ids{2});
  EXPECT_TRUE(next(*all).is_pause);
  append();
  EXPECT_TRUE(next(*all).is_pause) << "it is not written yet";
  commit();
  EXPECT_EQ(news(next(*all)), Ids{3});
  EXPECT_EQ(news(next(*some)), Ids{3});
  EXPECT_EQ(all->after(), 3);
}

TEST_F(EventReaderTest, WaitsForWhatComes) {
  const auto waiting = reader(0);
  append();
  EXPECT_EQ(news(next(*waiting, std::chrono::seconds(60))), Ids{1});
}

TEST_F(EventReaderTest, MayBeginBehindWhatIsWritten) {
  append();
  append();
  const auto ahead = reader(journal_->last_event_id(), false);
  EXPECT_TRUE(next(*ahead).is_pause);
  append();
  commit();
  EXPECT_EQ(news(next(*ahead)), Ids{3}) << "although the three may be one block";
}

TEST_F(EventReaderTest, TellsWhatWasRemoved) {
  for (int turn = 1; turn <= 4; ++turn) append(1, turn);
  commit();
  OtherProgram other(path_);
  other.run("DELETE FROM journal WHERE first_event_id IN (1, 3)");
  const auto late = reader(0);
  auto piece = next(*late);
  ASSERT_TRUE(piece.gap);
  EXPECT_EQ(std::pair(piece.gap->from, piece.gap->to), std::pair(1L, 1L));
  EXPECT_EQ(news(next(*late)), Ids{2});
  piece = next(*late);
  ASSERT_TRUE(piece.gap);
  EXPECT_EQ(std::pair(piece.gap->from, piece.gap->to), std::pair(3L, 3L));
  EXPECT_EQ(news(next(*late)), Ids{4});
  other.run("DELETE FROM journal");
  const auto later = reader(1);
  piece = next(*later);
  ASSERT_TRUE(piece.gap);
  EXPECT_EQ(std::pair(piece.gap->from, piece.gap->to), std::pair(2L, 4L));
  EXPECT_TRUE(next(*later).is_pause);
}

TEST_F(EventReaderTest, EndsWhenAllIsTold) {
  append();
  commit();
  const auto tail = reader(0);
  const auto turn = reader(0, false);
  feed_->end(FeedEnd::shutdown);
  EXPECT_EQ(news(next(*tail)), Ids{1});
  EXPECT_EQ(next(*tail).end, FeedEnd::shutdown);
  EXPECT_EQ(news(next(*turn)), Ids{1});
  EXPECT_TRUE(next(*turn).is_pause) << "a turn has an end of its own";
  feed_ = std::make_shared<Feed>(1, kRingBytes);
  feed_->end(FeedEnd::closed);
  const auto closed = reader(0, false);
  EXPECT_EQ(news(next(*closed)), Ids{1});
  EXPECT_EQ(next(*closed).end, FeedEnd::closed);
}

TEST_F(EventReaderTest, LooksUpWhenItIsPoked) {
  append();
  commit();
  const auto poked = reader(0);
  feed_->poke();
  EXPECT_TRUE(next(*poked).is_pause) << "before it tells anything more";
  EXPECT_EQ(news(next(*poked)), Ids{1});
  EXPECT_TRUE(next(*poked).is_pause);
}

TEST_F(EventReaderTest, IsNeverTooSlowWhileItReads) {
  const auto eager = reader(0);
  EXPECT_TRUE(next(*eager).is_pause);
  for (int i = 0; i < 3; ++i) append(10 * kRingBytes);
  commit();
  Ids read;
  while (read.size() < 3) {
    const auto piece = next(*eager);
    ASSERT_FALSE(piece.is_lagging);
    for (const std::int64_t id : news(piece)) read.push_back(id);
  }
  EXPECT_EQ(read, (Ids{1, 2, 3}));
}

TEST_F(EventReaderTest, IsCutWhenItIsAwayForLongAndMuchIsTold) {
  const auto away = reader(0);
  const auto quiet = reader(0, true, 1024 * 1024);
  const auto late = reader(0);
  EXPECT_TRUE(next(*away).is_pause);
  EXPECT_TRUE(next(*quiet).is_pause);
  append(10 * kRingBytes);
  commit();
  run_to_end(house_.io,
             pause(house_.io.get_executor(), kReaderAwayMax + std::chrono::milliseconds(100)));
  EXPECT_TRUE(next(*away).is_lagging);
  EXPECT_EQ(news(next(*quiet)), Ids{1}) << "that is not much for it";
  EXPECT_EQ(news(next(*late)), Ids{1}) << "it has not begun yet";
}

// A reader in the property below, and what it has been told.
struct Follower {
  std::unique_ptr<EventReader> reader;
  std::int64_t place = 0;  // told until here, or in a gap
};

// Random appends, commits, readers that come, read, cut off and come back, and removals by
// age and by hand: each reader is told every number once and in order, or a gap that covers
// it; and a gap covers nothing that is still there.
RC_GTEST_FIXTURE_PROP(EventReaderTest, LosesAndDoublesNothing, ()) {
  OtherProgram other(path_);
  other.run("PRAGMA busy_timeout = 10000");
  std::vector<Follower> followers;
  const auto follow = [&](Follower& follower) {
    const EventPiece piece = next(*follower.reader);
    RC_ASSERT(!piece.is_lagging && piece.end == FeedEnd::none);
    if (piece.gap) {
      RC_ASSERT(piece.blocks.empty());
      RC_ASSERT(piece.gap->from == follower.place + 1 && piece.gap->to >= piece.gap->from);
      RC_ASSERT(other.ask(fmt::format(
                    "SELECT count(*) FROM journal WHERE first_event_id <= {} AND last_event_id >= "
                    "{}",
                    piece.gap->to, piece.gap->from)) == "0");
      follower.place = piece.gap->to;
    }
    for (const std::int64_t id : news(piece)) RC_ASSERT(id == ++follower.place);
    RC_ASSERT(follower.reader->after() == follower.place);
    return !piece.is_pause;
  };
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 9), rc::gen::inRange(0, 1'000)));
  for (const auto& [what, number] : steps) {
    const auto one = static_cast<std::size_t>(number);
    if (what <= 1) {
      for (int i = 0; i <= number % 5; ++i) append(one, number % 3);
    } else if (what == 2) {
      commit();
    } else if (what == 3) {
      const std::int64_t after = number % (feed_->last_event_id() + 1);
      followers.push_back({reader(after), after});
    } else if (what == 4) {
      clock_.advance(std::chrono::seconds(1));
    } else if (what == 5 && number % 2 == 0) {
      const auto last = clock_.now() - std::chrono::seconds(number % 4);
      RC_ASSERT(house_.await(house_.ledger->journal.trim_old(last, 1 + number % 3)).has_value());
    } else if (what == 5) {
      other.run(fmt::format("DELETE FROM journal WHERE {} BETWEEN first_event_id AND last_event_id",
                            number % 20));
    } else if (!followers.empty()) {
      Follower& chosen = followers[one % followers.size()];
      if (what == 6) chosen.reader = reader(chosen.place);  // cut off, and back
      if (what == 7) followers.erase(followers.begin() + (number % std::ssize(followers)));
      if (what == 8) follow(chosen);
    }
  }
  commit();
  for (Follower& follower : followers) {
    while (follow(follower)) {
    }
    RC_ASSERT(follower.place == journal_->last_event_id());
  }
}

}  // namespace
}  // namespace clawdforge
