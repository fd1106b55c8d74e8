// The agent's seat in each of its states: what happens there when the agent fails, when the
// session is closed and when the gateway ends; and who gets a slot when there are too few.
#include "sessions/live/agent_seat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sessions/sessions_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

AgentScript agent_that_opens(AgentScript::Opening opening) {
  AgentScript script;
  script.opening = opening;
  return script;
}

// An agent that works on the prompt "wait" until it is cancelled.
AgentScript patient_agent() {
  AgentScript script;
  script.turn = [otherwise = script.turn](const std::string& prompt) {
    if (prompt != "wait") return otherwise(prompt);
    return std::vector<Step>{say("begun"), {Step::Kind::await_cancel}};
  };
  return script;
}

class AgentSeatTest : public SessionsTest {
 protected:
  AgentSeatTest() : SessionsTest(1) { starter_.script = patient_agent(); }
  ~AgentSeatTest() override {
    release();
    stop();
  }

  // Makes a session whose seat is in `state` and stays there until release().
  SessionId bring_to(SeatState state) {
    switch (state) {
      case SeatState::empty:
      case SeatState::ready:
        break;
      case SeatState::queued: {
        const SessionId holder = create();
        holding_ = begin_turn(holder, "wait");
        await([&] { return !agent().prompts.empty(); });
        creation_ = begin_create(&hang_up_);
        return await_newest(holder, state);
      }
      case SeatState::starting:
        hold_disk();
        creation_ = begin_create(&hang_up_);
        return await_newest(SessionId(""), state);
      case SeatState::aborting: {
        const SessionId id = bring_to(SeatState::starting);
        hang_up_.happen();
        return id;
      }
      case SeatState::opening:
        starter_.script.opening = AgentScript::Opening::hangs;
        creation_ = begin_create(&hang_up_);
        return await_newest(SessionId(""), state);
      case SeatState::leaving:
      case SeatState::replacing: {
        starter_.script.holds_exit = true;
        const SessionId id = create();
        agent().act({Step::Kind::die});
        await_seat(id, SeatState::leaving);
        if (state == SeatState::leaving) return id;
        turn_ = begin_turn(id, "again");
        await_seat(id, SeatState::replacing);
        return id;
      }
    }
    const SessionId id = create();
    if (state == SeatState::empty) {
      agent().act({Step::Kind::die});
      await_seat(id, SeatState::empty);
    } else {
      turn_ = begin_turn(id, "wait");
      await([&] { return !agent().prompts.empty(); });
    }
    return id;
  }

  SessionId await_newest(const SessionId& older, SeatState state) {
    SessionId id;
    await([&] {
      for (const SessionId& found : *run(house_.ledger->sessions.all_ids())) {
        if (found != older) id = found;
      }
      return !id.empty() && seat_of(id) == state;
    });
    return id;
  }

  void hold_disk() {
    disk_.post(Lane(), [released = gate_.get_future().share()] { released.wait(); });
    is_disk_held_ = true;
  }
  // Lets go of all that bring_to() holds, but for agents that open or work.
  void release() {
    if (std::exchange(is_disk_held_, false)) gate_.set_value();
    starter_.script.holds_exit = false;
    for (const auto& control : starter_.started) control->let_exit();
  }

  static Async<bool> stop_call(Sessions* sessions) {
    co_await sessions->stop();
    co_return true;
  }

  std::promise<void> gate_;
  bool is_disk_held_ = false;
  Call<Session> creation_;
  Call<TurnOutcome> turn_;
  Call<TurnOutcome> holding_;
};

TEST(SeatState, KnowsNoTransitionBesideTheTable) {
  EXPECT_TRUE(is_in_table({SeatState::empty, SeatState::queued}));
  EXPECT_FALSE(is_in_table({SeatState::empty, SeatState::ready}));
  EXPECT_FALSE(is_in_table({SeatState::ready, SeatState::ready}));
}

// Starts

TEST_F(AgentSeatTest, IsReadyWhenTheConversationIsOpenAndTheRowNamesTheProcess) {
  const SessionId id = create();
  EXPECT_EQ(seat_of(id), SeatState::ready);
  EXPECT_EQ(agent().conversation.name, id);
  EXPECT_TRUE(agent().conversation.is_unasked);
  EXPECT_EQ(OtherProgram(dir_.file("ledger.db")).ask("SELECT process_pid FROM sessions"), "4711");
}

TEST_F(AgentSeatTest, IsEmptyAgainWhenThereIsNoProgram) {
  starter_.is_program_there = false;
  EXPECT_EQ(result_of(begin_create()).error().code, "agent_not_found");
  EXPECT_EQ(newest_id(), "");
  starter_.is_program_there = true;
  EXPECT_EQ(ask(create(), "hello"), "end_turn echo: hello");
}

TEST_F(AgentSeatTest, EndsAnAgentThatDoesNotOpen) {
  starter_.script = agent_that_opens(AgentScript::Opening::fails);
  EXPECT_EQ(result_of(begin_create()).error().code, "agent_exited");
  EXPECT_TRUE(agent().is_gone);
  EXPECT_EQ(newest_id(), "");
}

TEST_F(AgentSeatTest, EndsAnAgentThatTheRowDoesNotTake) {
  starter_.script.opening = AgentScript::Opening::hangs;
  const auto made = begin_create();
  await([&] { return !starter_.started.empty() && agent().is_opening; });
  OtherProgram(dir_.file("ledger.db")).run("UPDATE sessions SET closed_at = 5");
  agent().let_open();
  EXPECT_EQ(result_of(made).error().code, "session_closed");
  EXPECT_TRUE(agent().is_gone);
}

TEST_F(AgentSeatTest, TellsATurnWhatTheAgentSaidOnStandardErrorWhenItDoesNotOpen) {
  const SessionId id = bring_to(SeatState::empty);
  starter_.script.opening = AgentScript::Opening::fails;
  const auto outcome = result_of(begin_turn(id, "again"));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure->code, "agent_exited");
  EXPECT_EQ(outcome->error_tail, "tail");
}

TEST_F(AgentSeatTest, GivesUpAStartThatGetsNoSlotInTime) {
  options_.start_max = 0s;
  make_sessions();
  starter_.script = patient_agent();
  const SessionId holder = create();
  const auto running = begin_turn(holder, "wait");
  await([&] { return !agent().prompts.empty(); });
  EXPECT_EQ(result_of(begin_create()).error().code, "queue_timeout");
  EXPECT_FALSE(running->has_value());
}

TEST_F(AgentSeatTest, RefusesAStartWhenTooManyWait) {
  limits_.queued_agents_max = 1;
  make_sessions();
  starter_.script = patient_agent();
  const SessionId holder = create();
  const auto running = begin_turn(holder, "wait");
  await([&] { return !agent().prompts.empty(); });
  const auto waiting = begin_create();
  await([&] { return house_.metric("clawdforge_agents_waiting") == 1; });
  EXPECT_EQ(result_of(begin_create()).error().code, "queue_full");
  EXPECT_FALSE(waiting->has_value());
}

TEST_F(AgentSeatTest, WaitsForTheTreeOfTheLastAgent) {
  const SessionId id = bring_to(SeatState::replacing);
  EXPECT_EQ(starter_.started.size(), 1U);
  release();
  EXPECT_EQ(told(turn_), "end_turn echo: again");
  EXPECT_EQ(starter_.started.size(), 2U);
  EXPECT_EQ(seat_of(id), SeatState::ready);
}

TEST_F(AgentSeatTest, DoesNotStartForATurnThatIsCancelledMeanwhile) {
  const SessionId id = bring_to(SeatState::replacing);
  EXPECT_TRUE(*run(sessions_->cancel(AppName("news"), id)));
  EXPECT_EQ(told(turn_), "cancelled ");
  EXPECT_EQ(seat_of(id), SeatState::leaving);
  release();
  await_seat(id, SeatState::empty);
  EXPECT_EQ(starter_.started.size(), 1U);
}

// The agent's own end

TEST_F(AgentSeatTest, TellsTheTurnWhenTheAgentDies) {
  const SessionId id = bring_to(SeatState::ready);
  agent().steps.clear();
  agent().act({Step::Kind::die});
  const auto outcome = result_of(turn_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure->code, "agent_exited");
  EXPECT_EQ(outcome->error_tail, "tail");
  EXPECT_EQ(ask(id, "again"), "end_turn echo: again");
  EXPECT_EQ(starter_.started.size(), 2U);
}

TEST_F(AgentSeatTest, StartsAnotherAgentWhenItsOwnHasDiedAndThatIsNotToldYet) {
  const SessionId id = create();
  EXPECT_EQ(ask(id, "hello"), "end_turn echo: hello");
  agent().has_left = true;
  EXPECT_EQ(ask(id, "again"), "end_turn echo: again");
  EXPECT_EQ(starter_.started.size(), 2U);
}

TEST_F(AgentSeatTest, StartsAnAgentAgainThatHasLostItsConversation) {
  starter_.script.turn = [](const std::string&) {
    return std::vector<Step>{say("what?"), {Step::Kind::lose_conversation}};
  };
  const SessionId id = create();
  EXPECT_EQ(ask(id, "hello"), "end_turn what?");
  EXPECT_EQ(ask(id, "again"), "end_turn what?");
  EXPECT_EQ(starter_.started.size(), 2U);
}

// Slots

TEST_F(AgentSeatTest, PutsAnIdleAgentToSleepForAnotherSession) {
  const SessionId first = create();
  const SessionId second = create();
  EXPECT_EQ(seat_of(first), SeatState::empty);
  EXPECT_TRUE(agent(0).is_gone);
  EXPECT_FALSE(agent(0).is_for_good);
  const auto woken = result_of(begin_turn(first, "hello"));
  ASSERT_TRUE(woken);
  EXPECT_EQ(woken->text, "echo: hello");
  EXPECT_EQ(woken->is_resumed, true);
  EXPECT_TRUE(agent(1).is_gone);
  EXPECT_EQ(agent(2).conversation.agent_session_id, "conversation");
}

TEST_F(AgentSeatTest, TakesNoSlotFromASessionAtWork) {
  const SessionId first = bring_to(SeatState::ready);
  const auto second = begin_create();
  await([&] { return house_.metric("clawdforge_agents_waiting") == 1; });
  EXPECT_FALSE(agent().is_stopped);
  EXPECT_TRUE(*run(sessions_->cancel(AppName("news"), first)));
  EXPECT_TRUE(result_of(second));
  EXPECT_TRUE(agent().is_gone);
}

// In each state

class EachSeatState : public AgentSeatTest, public testing::WithParamInterface<SeatState> {
 protected:
  // Those whose caller waits are told something, and nothing is left.
  void expect_the_end(const SessionId& id) {
    for (const auto& call : {turn_, holding_}) {
      if (call) EXPECT_TRUE(told(call) != "");
    }
    if (creation_) EXPECT_FALSE(result_of(creation_));
    for (const auto& control : starter_.started) EXPECT_TRUE(control->is_gone);
    EXPECT_EQ(seat_of(id), SeatState::empty);
  }
};

TEST_P(EachSeatState, ShutsDown) {
  const SessionId id = bring_to(GetParam());
  const auto stopped = begin(stop_call(sessions_.get()));
  await([&] { return sessions_->live().is_stopping(); });
  release();
  EXPECT_TRUE(result_of(stopped));
  expect_the_end(id);
  EXPECT_EQ(house_.metric("clawdforge_agents_running"), 0);
}

TEST_P(EachSeatState, IsClosed) {
  const SessionId id = bring_to(GetParam());
  const auto closed = begin(sessions_->close(AppName("news"), id));
  await([&] {
    const auto live = sessions_->live().find(id);
    return !live || live->is_ending();
  });
  release();
  EXPECT_TRUE(result_of(closed));
  if (holding_) {
    EXPECT_FALSE(holding_->has_value()) << "another session's turn";
    holding_.reset();
    EXPECT_FALSE(agent(0).is_gone);
    starter_.started.erase(starter_.started.begin());
  }
  expect_the_end(id);
  EXPECT_EQ(ask(id, "too late") == "session_closed", creation_ == nullptr);
}

INSTANTIATE_TEST_SUITE_P(AgentSeat, EachSeatState,
                         testing::Values(SeatState::empty, SeatState::queued, SeatState::starting,
                                         SeatState::opening, SeatState::ready, SeatState::aborting,
                                         SeatState::leaving, SeatState::replacing),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// While a session is made

class EachStateOfACreation : public AgentSeatTest, public testing::WithParamInterface<SeatState> {};

TEST_P(EachStateOfACreation, LeavesNothingWhenTheCallerHangsUp) {
  const SessionId id = bring_to(GetParam());
  hang_up_.happen();
  release();
  EXPECT_FALSE(result_of(creation_));
  await_seat(id, SeatState::empty);
  await([&] { return run(house_.ledger->sessions.find(id)).error().kind == Errc::not_found; });
}

INSTANTIATE_TEST_SUITE_P(AgentSeat, EachStateOfACreation,
                         testing::Values(SeatState::queued, SeatState::starting, SeatState::opening,
                                         SeatState::aborting),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// The table has no row that no test takes. Looks only when all tests have run.
class TableIsTaken : public testing::Environment {
 public:
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;
    for (const SeatTransition& transition : kSeatTransitions) {
      EXPECT_TRUE(transitions_taken().contains(transition)) << fmt::format(
          "no test goes from {} to {}", name_of(transition.from), name_of(transition.to));
    }
  }
};
const auto* const kTableIsTaken = testing::AddGlobalTestEnvironment(new TableIsTaken);

}  // namespace
}  // namespace clawdforge
