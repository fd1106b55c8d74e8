#include "sessions/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sessions/sessions_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// An agent that does `steps` when it is asked `prompt`, and else answers as every other.
AgentScript agent_with(std::string prompt, std::vector<Step> steps) {
  AgentScript script;
  script.turn = [prompt, steps, otherwise = script.turn](const std::string& asked) {
    return asked == prompt ? steps : otherwise(asked);
  };
  return script;
}

AgentScript agent_that_waits() {
  return agent_with("wait", {say("begun"), {Step::Kind::await_cancel}});
}

// Turns

TEST_F(SessionsTest, AnswersATurnWithWhatTheAgentSaid) {
  const SessionId id = create();
  EXPECT_EQ(ask(id, "hello"), "end_turn echo: hello");
  EXPECT_EQ(ask(id, "again"), "end_turn echo: again");
  EXPECT_EQ(starter_.started.size(), 1U);
}

TEST_F(SessionsTest, AWarmTurnIsOneCallToTheLedger) {
  const SessionId id = create();
  EXPECT_EQ(ask(id, "first"), "end_turn echo: first");
  const auto calls = [this] { return house_.metric("clawdforge_ledger_committed_jobs_total"); };
  for (const char* prompt : {"a", "b", "c"}) {
    await([&] { return house_.metric("clawdforge_ledger_queue_jobs") == 0; });
    const double before = calls();
    EXPECT_EQ(ask(id, prompt), std::string("end_turn echo: ") + prompt);
    EXPECT_EQ(calls(), before + 1) << "its row is known, its events come with its end";
  }
  OtherProgram(dir_.file("ledger.db")).run("UPDATE sessions SET model = 'another'");
  const double before = calls();
  EXPECT_EQ(ask(id, "d"), "end_turn echo: d");
  EXPECT_EQ(calls(), before + 2) << "the row may be another one";
  EXPECT_EQ(ask(id, "e"), "end_turn echo: e");
  OtherProgram(dir_.file("ledger.db")).run("UPDATE sessions SET closed_at = 5");
  EXPECT_EQ(ask(id, "f"), "session_closed");
}

TEST_F(SessionsTest, RunsTurnsInTheOrderInWhichTheyCame) {
  const SessionId id = create();
  std::vector<Call<TurnOutcome>> calls;
  for (const char* prompt : {"a", "b", "c", "d"}) calls.push_back(begin_turn(id, prompt));
  std::vector<std::int64_t> indices;
  for (const auto& call : calls) indices.push_back(result_of(call)->turn_index);
  EXPECT_THAT(indices, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(agent().prompts, ElementsAre("a", "b", "c", "d"));
}

TEST_F(SessionsTest, RefusesATurnWhenTooManyWait) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  const auto running = begin_turn(id, "wait");
  await([&] { return !agent().prompts.empty(); });
  std::vector<Call<TurnOutcome>> waiting;
  for (std::size_t i = 0; i < kWaitingTurnsMax; ++i) waiting.push_back(begin_turn(id, "next"));
  await([&] { return sessions_->load().turns_waiting == kWaitingTurnsMax; });
  EXPECT_EQ(ask(id, "one more"), "turn_queue_full");
  EXPECT_TRUE(*run(sessions_->cancel(AppName("news"), id)));
  EXPECT_EQ(told(running), "cancelled begun");
  for (const auto& call : waiting) EXPECT_EQ(told(call), "end_turn echo: next");
}

TEST_F(SessionsTest, EndsATurnWhoseTimeEndsWhileItWaits) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  const auto running = begin_turn(id, "wait");
  await([&] { return !agent().prompts.empty(); });
  EXPECT_EQ(told(begin_turn(id, "late", 0s)), "queue_timeout");
  EXPECT_FALSE(running->has_value());
  EXPECT_THAT(agent().prompts, ElementsAre("wait"));
}

TEST_F(SessionsTest, CancelsATurnWhoseTimeEndsWhileItRuns) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  EXPECT_EQ(told(begin_turn(id, "wait", 1s)), "timeout");
  EXPECT_TRUE(agent().is_cancelled);
  EXPECT_FALSE(agent().is_stopped);
  EXPECT_EQ(ask(id, "next"), "end_turn echo: next");
}

TEST_F(SessionsTest, EndsAnAgentThatDoesNotHeedACancel) {
  starter_.script = agent_with("hang", {say("begun"), {Step::Kind::hang}});
  const SessionId id = create();
  const auto turn = begin_turn(id, "hang");
  await([&] { return !agent().prompts.empty(); });
  EXPECT_TRUE(*run(sessions_->cancel(AppName("news"), id)));
  EXPECT_EQ(told(turn), "cancelled begun");
  await([&] { return agent().is_gone; }, "the agent's end");
}

TEST_F(SessionsTest, StopsAnAgentThatSaysNothing) {
  options_.first_sign_max = 0s;
  make_sessions();
  starter_.script = agent_with("hang", {{Step::Kind::hang}});
  EXPECT_EQ(ask(create(), "hang"), "agent_stalled");
}

TEST_F(SessionsTest, HasNothingToCancelBetweenTurns) {
  const SessionId id = create();
  EXPECT_FALSE(*run(sessions_->cancel(AppName("news"), id)));
  EXPECT_EQ(ask(id, "hello"), "end_turn echo: hello");
  EXPECT_FALSE(*run(sessions_->cancel(AppName("news"), id)));
}

TEST_F(SessionsTest, DropsAWaitingTurnWhenItsCallerHangsUp) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  const auto running = begin_turn(id, "wait");
  await([&] { return !agent().prompts.empty(); });
  const auto waiting = begin_turn(id, "dropped", 60s, &hang_up_);
  await([&] { return sessions_->load().turns_waiting == 1; });
  hang_up_.happen();
  EXPECT_EQ(told(waiting), "cancelled ");
  EXPECT_FALSE(running->has_value());
}

TEST_F(SessionsTest, GoesOnWithATurnWhoseCallerHangsUpWhileItRuns) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  const auto running = begin_turn(id, "wait", 60s, &hang_up_);
  await([&] { return !agent().prompts.empty(); });
  hang_up_.happen();
  EXPECT_TRUE(sessions_->live().find(id)->is_busy());
  EXPECT_FALSE(agent().is_cancelled);
}

// What the agent says after the end of its turn must not keep the answer back.
TEST_F(SessionsTest, AnswersATurnWhoseAgentFloodsAfterItsEnd) {
  std::vector<Step> steps = {say("done"), end_turn()};
  for (int i = 0; i < 300; ++i) steps.push_back(say(std::string(200 * 1024, 'x')));
  starter_.script = agent_with("flood", std::move(steps));
  const SessionId id = create();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(id, "flood"), "end_turn done");
  EXPECT_FALSE(agent().steps.empty()) << "the flood was over too soon to show anything";
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kCommitWaitMax);
}

// Questions

TEST_F(SessionsTest, AnswersAQuestionByTheSessionsMode) {
  starter_.script = agent_with("edit", {{Step::Kind::question, "May I?"}, end_turn()});
  EXPECT_EQ(ask(create(), "edit"), "end_turn ");
  EXPECT_THAT(agent().answers, ElementsAre(std::optional<std::string>("yes")));
}

TEST_F(SessionsTest, CancelsTheQuestionsOfATurnThatIsCancelled) {
  options_.permission_mode = PermissionMode::ask;
  make_sessions();
  starter_.script =
      agent_with("edit", {{Step::Kind::question, "May I?"}, {Step::Kind::await_cancel}});
  const SessionId id = create();
  const auto turn = begin_turn(id, "edit");
  await([&] { return sessions_->load().questions_open == 1; });
  EXPECT_TRUE(*run(sessions_->cancel(AppName("news"), id)));
  EXPECT_EQ(told(turn), "cancelled ");
  EXPECT_THAT(agent().answers, ElementsAre(std::nullopt));
}

// Closing

TEST_F(SessionsTest, EndsAllTurnsWhenTheSessionIsClosed) {
  starter_.script = agent_that_waits();
  const SessionId id = create();
  const auto running = begin_turn(id, "wait");
  const auto waiting = begin_turn(id, "next");
  await([&] { return sessions_->load().turns_waiting == 1; });
  EXPECT_TRUE(*run(sessions_->close(AppName("news"), id)));
  EXPECT_EQ(told(running), "session_closed");
  EXPECT_EQ(told(waiting), "session_closed");
  EXPECT_TRUE(agent().is_gone);
  EXPECT_TRUE(agent().is_for_good);
  EXPECT_EQ(ask(id, "too late"), "session_closed");
  EXPECT_FALSE(*run(sessions_->close(AppName("news"), id)));
}

// Two callers close the session at the same time. When the first has failed, the session must
// still refuse turns until the second is done as well.
TEST_F(SessionsTest, RefusesTurnsUntilEachThatRefusedThemAcceptsThem) {
  const auto live = sessions_->live().find(create());
  const auto enqueue = [&] { return live->enqueue(turn_request("p", 60s), {}, 0); };
  live->refuse_turns();
  live->refuse_turns();
  live->accept_turns();
  EXPECT_EQ(enqueue().error().code, "session_closed");
  live->accept_turns();
  EXPECT_TRUE(enqueue());
}

TEST_F(SessionsTest, TakesTurnsAgainWhenTheRowWasNotClosed) {
  const SessionId id = create();
  EXPECT_EQ(ask(id, "hello"), "end_turn echo: hello");
  EXPECT_FALSE(*run(sessions_->closer().sweep(id, clock_.now() - 1h)));
  EXPECT_EQ(ask(id, "again"), "end_turn echo: again");
  EXPECT_TRUE(*run(sessions_->closer().sweep(id, clock_.now())));
  EXPECT_TRUE(agent().is_gone);
  EXPECT_EQ(ask(id, "too late"), "session_closed");
}

TEST_F(SessionsTest, LeavesNothingOfASessionThatIsQuiet) {
  const SessionId id = create();
  EXPECT_EQ(ask(id, "hello"), "end_turn echo: hello");
  agent().act({Step::Kind::die});
  await([&] { return sessions_->live().find(id) == nullptr; }, "the session is forgotten");
  EXPECT_EQ(sessions_->live_count(), 0U);
  EXPECT_EQ(ask(id, "again"), "end_turn echo: again");
  EXPECT_EQ(agent(1).conversation.agent_session_id, "conversation");
}

}  // namespace
}  // namespace clawdforge
