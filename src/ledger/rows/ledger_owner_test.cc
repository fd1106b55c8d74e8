// Whose rows they are, and what becomes of what is written again.
#include "ledger/ledger_contract_fixture.h"

namespace clawdforge {
namespace {

constexpr SessionLimits kManySessions{.open_max = 1'000, .open_max_per_app = std::nullopt};

Session owned_session(const std::string& id) {
  Session session;
  session.id = SessionId(id);
  session.app = AppName("a");
  session.agent = "demo";
  session.created_at = at_second(100);
  return session;
}

// A whole turn of four events.
SessionWrite turn_of(const std::string& id, std::int64_t index) {
  SessionWrite write;
  write.session_id = SessionId(id);
  write.app = AppName("a");
  write.starts = {{index, at_second(200 + index)}};
  write.blocks = {{index * 4 - 3, index * 4 - 2, index, at_second(200 + index), "{}\n{}\n"},
                  {index * 4 - 1, index * 4, index, at_second(200 + index), "{}\n{}\n"}};
  write.ends = {{.index = index,
                 .state = TurnState::done,
                 .at = at_second(201 + index),
                 .stop_reason = "end_turn",
                 .code = std::nullopt,
                 .usage = Usage{1, 2, 3, 4},
                 .cost_usd = 0.25}};
  write.audit = {{"turn", at_second(201 + index), "{}"}};
  return write;
}

class LedgerOwners : public LedgerContract {
 protected:
  Session find(const std::string& id) {
    return await(ledger().sessions.load(SessionId(id))).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, LedgerOwners, databases(), name_of_database);

TEST_P(LedgerOwners, NothingOfALivingGatewayIsTakenAway) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, instance_id,
                      process_pid, process_start, process_boot_id) VALUES
      ('r1', 'a', 'demo', 'running', 1, 'other', 7, 70, 'boot');)");
  ASSERT_TRUE(await(ledger().instances.begin("1", 1, at_second(1))));
  RowsOfAnother other = as("other");
  ASSERT_TRUE(await(other.instances.begin("1", 2, at_second(1))));
  ASSERT_TRUE(await(other.sessions.add(owned_session("unanswered"), kManySessions)));
  ASSERT_TRUE(await(other.sessions.add(owned_session("theirs"), kManySessions)));
  ASSERT_TRUE(await(other.sessions.note_agent(SessionId("theirs"), "x", {8, 80, "boot"}, {})));
  SessionWrite begun = turn_of("theirs", 1);
  begun.ends.clear();
  ASSERT_TRUE(await(other.journal.write(begun)));

  EXPECT_TRUE(await(ledger().runs.left_processes(9))->empty());
  EXPECT_TRUE(await(ledger().sessions.left_processes(9))->empty());
  EXPECT_EQ(await(ledger().runs.interrupt_left(at_second(300))), 0);
  EXPECT_TRUE(await(ledger().journal.unfinished_turns(9))->empty());
  EXPECT_EQ(await(ledger().sessions.adopt_left()), 0);
  EXPECT_EQ(await(ledger().sessions.note_agent(SessionId("theirs"), "y", {}, {})).error().code,
            "session_closed");
  ASSERT_TRUE(await(ledger().sessions.forget_process(SessionId("theirs"))));
  for (const SessionWrite& mine : {turn_of("theirs", 2), begun}) {
    EXPECT_EQ(await(ledger().journal.write(mine)).error().code, "session_closed");
  }
  EXPECT_EQ(find("theirs").agent_session_id, "x");
  EXPECT_EQ(find("theirs").turn_count, 1);

  EXPECT_EQ(await(ledger().instances.end_others(at_second(400))), 1);
  EXPECT_EQ(await(ledger().instances.end_others(at_second(400))), 0);
  EXPECT_EQ(await(ledger().runs.left_processes(9))->size(), 1u);
  EXPECT_EQ(await(ledger().sessions.left_processes(9))->size(), 1u);
  EXPECT_EQ(await(ledger().runs.interrupt_left(at_second(300))), 1);
  EXPECT_EQ(await(ledger().journal.unfinished_turns(9))->size(), 1u);
  EXPECT_EQ(await(ledger().sessions.adopt_left()), 1) << "the one that was never answered";
  ASSERT_TRUE(await(ledger().journal.write(turn_of("theirs", 2))));
  EXPECT_EQ(find("theirs").turn_count, 2);
  EXPECT_EQ(await(other.sessions.note_agent(SessionId("theirs"), "z", {}, {})).error().code,
            "session_closed")
      << "it has a new owner, who lives";
}

TEST_P(LedgerOwners, WhatIsAddedAgainIsThereOnce) {
  open();
  const SessionLimits one{1, 1};
  ASSERT_TRUE(await(ledger().sessions.add(owned_session("s1"), one)));
  EXPECT_TRUE(await(ledger().sessions.add(owned_session("s1"), one)));
  EXPECT_EQ(await(ledger().sessions.count_open()), 1);
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  EXPECT_TRUE(await(ledger().apps.add(app_named("a"))));
  EXPECT_EQ(apps().size(), 1u);
}

TEST_P(LedgerOwners, ATurnCountsOnceHoweverOftenItIsWritten) {
  open();
  ASSERT_TRUE(await(ledger().sessions.add(owned_session("s1"), kManySessions)));
  for (const std::int64_t index : {1, 2, 3}) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      ASSERT_TRUE(await(ledger().journal.write(turn_of("s1", index))));
      const Session session = find("s1");
      EXPECT_EQ(session.turn_count, index);
      EXPECT_EQ(session.last_event_id, 4 * index);
      EXPECT_EQ(session.last_turn_at, at_second(201 + index));
      EXPECT_EQ(session.usage, (Usage{index, 2 * index, 3 * index, 4 * index}));
      EXPECT_EQ(session.cost_usd, 0.25 * static_cast<double>(index));
      EXPECT_EQ(await(ledger().audit.page({}))->events.size(), static_cast<std::size_t>(index));
    }
  }
  EXPECT_EQ(await(ledger().journal.page(SessionId("s1"), 0, 1'000))->size(), 6u);
}

}  // namespace
}  // namespace clawdforge
