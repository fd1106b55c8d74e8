// For tests: an open session, its journal and the feed it tells. The session "s" of the app
// "app" is in a ledger of its own; the journal is given up and its tasks are joined at the end.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/async/task_group.h"
#include "ledger/ledger_fixture.h"
#include "sessions/journal/feed.h"
#include "sessions/journal/session_journal.h"

namespace clawdforge {

class JournalTest : public ::testing::Test {
 protected:
  explicit JournalTest(std::size_t ring_bytes) : feed_(std::make_shared<Feed>(0, ring_bytes)) {
    EXPECT_TRUE(house_.open(path_));
    Session session;
    session.id = SessionId("s");
    session.app = AppName("app");
    session.agent = "demo";
    session.created_at = clock_.now();
    EXPECT_TRUE(house_.await(house_.ledger->sessions.add(session, {10, {}})));
    tasks_ = std::make_unique<TaskGroup>(house_.io.get_executor());
    journal_ =
        std::make_unique<SessionJournal>(house_.io.get_executor(), *tasks_, house_.ledger->journal,
                                         clock_, house_.log, feed_, SessionId("s"), AppName("app"));
  }
  ~JournalTest() override {
    journal_->give_up();
    run_to_end(house_.io, join());
  }

  Task<bool> join() {
    co_await tasks_->join();
    co_return true;
  }

  TempDir dir_;
  const std::string path_ = dir_.file("ledger.db");
  ManualClock clock_{TimePoint(std::chrono::hours(500'000))};
  LedgerHouse house_;
  std::shared_ptr<Feed> feed_;
  std::unique_ptr<TaskGroup> tasks_;
  std::unique_ptr<SessionJournal> journal_;
};

}  // namespace clawdforge
