#include "sessions/journal/session_journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sessions/journal/journal_fixture.h"

namespace clawdforge {
namespace {

class SessionJournalTest : public JournalTest {
 protected:
  SessionJournalTest() : JournalTest(1024) {}

  std::string ask(const std::string& sql) { return OtherProgram(path_).ask(sql); }
  // The events as they were written, by their numbers.
  std::string told() {
    return ask(
        "SELECT group_concat(events, '') FROM (SELECT events FROM journal ORDER BY "
        "first_event_id)");
  }
};

TEST_F(SessionJournalTest, WritesATurnInOneCommit) {
  const double before = house_.metric("clawdforge_ledger_committed_jobs_total");
  journal_->begin_turn({.index = 1, .json = "{}", .is_urgent = false});
  clock_.advance(std::chrono::milliseconds(1'500));
  journal_->append(1, EventKind::update, R"({"a":1})");
  journal_->append(0, EventKind::update, "{}");
  journal_->append(1, EventKind::done, "{}");
  journal_->settle_turn({1, TurnState::done, clock_.now(), "end_turn", {}, {}, {}});
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(told(),
            R"({"id":1,"turn_index":1,"at":1800000000,"offset_ms":0,"event":"turn","data":{}})"
            "\n"
            R"({"id":2,"turn_index":1,"at":1800000001,"offset_ms":1500,"event":"update",)"
            R"("data":{"a":1}})"
            "\n"
            R"({"id":3,"turn_index":0,"at":1800000001,"offset_ms":null,"event":"update","data":{}})"
            "\n"
            R"({"id":4,"turn_index":1,"at":1800000001,"offset_ms":1500,"event":"done","data":{}})"
            "\n");
  EXPECT_EQ(ask("SELECT state, stop_reason, first_event_id FROM turns"), "done|end_turn|1");
  EXPECT_EQ(ask("SELECT turn_count, last_event_id FROM sessions"), "1|4");
  EXPECT_EQ(ask("SELECT count(*) FROM journal"), "3");
  EXPECT_EQ(house_.metric("clawdforge_ledger_committed_jobs_total"), before + 1);
}

TEST_F(SessionJournalTest, WritesAnEndWithItsClosingEventAlsoWhenItWasIdle) {
  journal_->begin_turn({.index = 1, .json = "{}", .is_urgent = true});
  ASSERT_TRUE(house_.await(journal_->committed()));
  const double before = house_.metric("clawdforge_ledger_committed_jobs_total");
  // As the session does it: from the io thread, where a new task may begin at once.
  const auto end = [](SessionJournal* journal, TimePoint now) -> Task<bool> {
    journal->append(1, EventKind::done, "{}");
    journal->note({.event = "turn", .at = now});
    journal->settle_turn({1, TurnState::done, now, "end_turn", {}, {}, {}});
    co_return true;
  };
  run_to_end(house_.io, end(journal_.get(), clock_.now()));
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(house_.metric("clawdforge_ledger_committed_jobs_total"), before + 1);
  EXPECT_EQ(ask("SELECT state FROM turns"), "done");
}

TEST_F(SessionJournalTest, WritesAnEndWithItsClosingEventAlsoWhenMuchFollowsIt) {
  journal_->begin_turn({.index = 1, .json = "{}", .is_urgent = true});
  journal_->append(1, EventKind::done, "{}");
  journal_->note({.event = "turn", .at = clock_.now()});
  journal_->settle_turn({1, TurnState::done, clock_.now(), "end_turn", {}, {}, {}});
  const std::string much = "\"" + std::string(200 * 1024, 'x') + "\"";
  for (int i = 0; i < 40; ++i) journal_->append(1, EventKind::update, much);
  journal_->note({.event = "cancel", .at = clock_.now()});
  // The first commit is made and the second is not, as if the gateway were killed in between.
  OtherProgram(path_).run(
      "CREATE TRIGGER full BEFORE INSERT ON journal WHEN NEW.first_event_id > 30 "
      "BEGIN SELECT RAISE(ABORT, 'no more'); END");
  EXPECT_FALSE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT MIN(first_event_id) FROM journal"), "1");
  EXPECT_EQ(ask("SELECT state FROM turns"), "done");
  EXPECT_EQ(ask("SELECT event FROM session_events"), "turn");
}

// A turn ends, and its agent says more and more, as fast as the journal takes it.
TEST_F(SessionJournalTest, TellsThatATurnIsKeptWhileItsAgentFloods) {
  journal_->begin_turn({.index = 1, .json = "{}", .is_urgent = true});
  journal_->append(1, EventKind::done, "{}");
  journal_->settle_turn({1, TurnState::done, clock_.now(), "end_turn", {}, {}, {}});
  const std::string much = "\"" + std::string(200 * 1024, 'x') + "\"";
  for (int i = 0; i < 30; ++i) journal_->append(1, EventKind::update, much);
  bool is_kept = false;
  const auto wait = [](SessionJournal* journal, bool* told) -> Task<void> {
    const auto committed = co_await journal->committed();
    *told = committed.has_value();
  };
  const auto flood = [](SessionJournal* journal, std::string more, const bool* told) -> Task<bool> {
    for (int i = 0; i < 400 && !*told; ++i) {
      journal->append(1, EventKind::update, more);
      co_await journal->wait_for_space();
    }
    co_return *told;
  };
  tasks_->spawn(wait(journal_.get(), &is_kept));
  EXPECT_TRUE(run_to_end(house_.io, flood(journal_.get(), much, &is_kept)));
}

TEST_F(SessionJournalTest, WritesTheBeginningOfATurnThatStaysSilent) {
  journal_->begin_turn({.index = 7, .json = "{}", .is_urgent = false});
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT turn_index, state FROM turns"), "7|accepted");
}

// As many as a lively session has, so that one of them comes into a later commit.
TEST_F(SessionJournalTest, WritesAStartWithItsTurnEventAlsoWhenMuchComesBeforeIt) {
  const std::string much = "\"" + std::string(200 * 1024, 'x') + "\"";
  for (int i = 0; i < 30; ++i) journal_->append(0, EventKind::update, much);
  EXPECT_EQ(journal_->begin_turn({.index = 1, .json = "{}", .title = "a title"}), 31);
  OtherProgram(path_).run(
      "CREATE TRIGGER full BEFORE INSERT ON journal WHEN NEW.first_event_id > 30 "
      "BEGIN SELECT RAISE(ABORT, 'no more'); END");
  EXPECT_FALSE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT count(*) FROM turns"), "0");
  EXPECT_EQ(ask("SELECT COALESCE(title, 'none') FROM sessions"), "none");
}

TEST_F(SessionJournalTest, GivesASessionTheTitleOfItsFirstTurn) {
  journal_->begin_turn({.index = 1, .json = "{}", .title = "first"});
  journal_->begin_turn({.index = 2, .json = "{}", .title = "second"});
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT title FROM sessions"), "first");
}

TEST_F(SessionJournalTest, KeepsTurnsInBlocksOfTheirOwn) {
  journal_->append(1, EventKind::update, "{}");
  journal_->append(2, EventKind::update, "{}");
  journal_->append(1, EventKind::update, "{}");
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT first_event_id, last_event_id, turn_index FROM journal ORDER BY 1"),
            "1|1|1\n2|2|2\n3|3|1");
}

TEST_F(SessionJournalTest, TellsWhenTheLedgerDoesNotTakeItAndTriesAgain) {
  std::filesystem::rename(path_, path_ + ".moved");
  journal_->append(1, EventKind::update, "{}");
  EXPECT_FALSE(house_.await(journal_->committed()));
  std::filesystem::rename(path_ + ".moved", path_);
  const auto wait = [](SessionJournal* journal) -> Task<bool> {
    co_await journal->idle();
    co_return true;
  };
  EXPECT_TRUE(run_to_end(house_.io, wait(journal_.get())));
  EXPECT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT count(*) FROM journal"), "1");
}

TEST_F(SessionJournalTest, DropsWhatTheLedgerWillNeverTakeAndGoesOn) {
  OtherProgram other(path_);
  other.run(
      "CREATE TRIGGER no BEFORE INSERT ON journal WHEN NEW.turn_index = 1 "
      "BEGIN SELECT RAISE(ABORT, 'no'); END");
  journal_->append(1, EventKind::update, "{}");
  const auto refused = house_.await(journal_->committed());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::internal);
  EXPECT_FALSE(journal_->failure()) << "the next turn would be refused for it";
  journal_->append(2, EventKind::update, "{}");
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(ask("SELECT first_event_id, turn_index FROM journal"), "1|2");
  EXPECT_EQ(feed_->last_event_id(), 1) << "there is no gap";
}

TEST_F(SessionJournalTest, HoldsTheAgentBackWhenMuchWaits) {
  const std::string large(kJournalWaitingBytesMax + 1, 'x');
  journal_->append(1, EventKind::update, "\"" + large + "\"");
  journal_->append(1, EventKind::update, "{}");
  const auto wait = [](SessionJournal* journal) -> Task<bool> {
    co_await journal->wait_for_space();
    co_return true;
  };
  EXPECT_GT(journal_->waiting_bytes(), kJournalWaitingBytesMax);
  EXPECT_TRUE(run_to_end(house_.io, wait(journal_.get())));
  ASSERT_TRUE(house_.await(journal_->committed()));
  EXPECT_EQ(journal_->waiting_bytes(), 0U);
  EXPECT_EQ(ask("SELECT first_event_id, last_event_id FROM journal ORDER BY 1"), "1|1\n2|2");
}

// However events come, in whatever sizes and from whatever turns: each is there once, in
// order, in blocks that follow each other without a hole and stay within their bound.
RC_GTEST_FIXTURE_PROP(SessionJournalTest, LosesAndDoublesNothing, ()) {
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::inRange(0, 70'000)));
  std::string expected;
  std::int64_t id = 0;
  for (const auto& [turn, size] : steps) {
    const std::string json =
        fmt::format("\"{}\"", std::string(static_cast<std::size_t>(size), 'x'));
    journal_->append(turn, EventKind::update, json);
    append_event_line(expected, Event{++id, turn, EventKind::update, json, clock_.now()});
    if (size % 7 == 0) RC_ASSERT(house_.await(journal_->committed()).has_value());
  }
  RC_ASSERT(house_.await(journal_->committed()).has_value());
  const std::string there = told();
  RC_ASSERT((there == "NULL" ? "" : there) == expected);
  RC_ASSERT(ask("SELECT count(*) FROM journal a WHERE first_event_id > 1 AND NOT EXISTS (SELECT 1 "
                "FROM journal b WHERE b.last_event_id = a.first_event_id - 1)") == "0");
  RC_ASSERT(ask(fmt::format("SELECT count(*) FROM journal WHERE bytes > {}",
                            kJournalBlockBytesMax + 100)) == "0");
}

}  // namespace
}  // namespace clawdforge
