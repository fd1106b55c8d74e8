#include "custody/login_states.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using namespace std::chrono_literals;
using enum CustodyState;

class LoginStatesTest : public ::testing::Test {
 protected:
  LoginFile good_for(std::chrono::seconds time) const {
    return {.has_access = true, .has_refresh = true, .expires_at = clock_.now() + time};
  }
  // A login that was there at the start, and that its program knows.
  void begin(const LoginFile& file) {
    states_.note_file(file, clock_.now());
    if (file.expires_at > clock_.now() + kRenewBefore) end_keeper(file, true);
  }
  bool end_keeper(const LoginFile& after, std::optional<bool> logged_in = true) {
    const auto due = states_.keeper_due(clock_.now());
    EXPECT_TRUE(due);
    if (due) states_.note_keeper(*due);
    EXPECT_FALSE(states_.keeper_due(clock_.now())) << "one at a time";
    return states_.note_keeper_end({.logged_in = logged_in}, after, clock_.now());
  }
  CustodyState state() const { return states_.state(clock_.now()); }
  std::string_view code() const {
    const auto refusal = states_.refusal(clock_.now(), "Log in.");
    return refusal ? refusal->failure.code : "";
  }
  std::chrono::seconds wait() const {
    return states_.refusal(clock_.now(), "Log in.")->failure.retry_after;
  }
  bool may_wait() const { return states_.refusal(clock_.now(), "Log in.")->may_wait; }
  std::optional<KeeperTask> due() const { return states_.keeper_due(clock_.now()); }

  ManualClock clock_{TimePoint(std::chrono::hours(500'000))};
  LoginStates states_;
};

TEST_F(LoginStatesTest, AGoodLoginIsTriedOnceAndPasses) {
  states_.note_file(good_for(8h), clock_.now());
  EXPECT_EQ(state(), ok);
  EXPECT_EQ(due(), KeeperTask::renew) << "whether the program finds it there";
  EXPECT_FALSE(end_keeper(good_for(8h)));
  EXPECT_EQ(state(), ok);
  EXPECT_EQ(code(), "");
  EXPECT_FALSE(due());
}

TEST_F(LoginStatesTest, ItIsRenewedBeforeItEndsWhileWorkGoesOn) {
  begin(good_for(300s));
  EXPECT_EQ(states_.next_look(clock_.now()), clock_.now() + 1s);
  EXPECT_FALSE(due());
  clock_.advance(1s);
  EXPECT_EQ(state(), renewing);
  EXPECT_EQ(code(), "");
  EXPECT_EQ(due(), KeeperTask::renew);
  EXPECT_TRUE(end_keeper(good_for(8h)));
  EXPECT_EQ(state(), ok);
}

TEST_F(LoginStatesTest, OneThatHasExpiredIsWaitedFor) {
  states_.note_file(good_for(-1h), clock_.now());
  EXPECT_EQ(state(), late);
  EXPECT_EQ(code(), "login_renewing");
  EXPECT_TRUE(may_wait());
  EXPECT_EQ(wait(), 3s);
  EXPECT_TRUE(end_keeper(good_for(8h)));
  EXPECT_EQ(state(), ok);
}

TEST_F(LoginStatesTest, WithLittleTimeLeftNoWorkBegins) {
  begin(good_for(8h));
  clock_.advance(8h - 31s);
  EXPECT_EQ(state(), renewing);
  clock_.advance(2s);
  EXPECT_EQ(state(), late);
}

TEST_F(LoginStatesTest, AnEndpointThatDoesNotAnswerIsTriedLessAndLessOften) {
  const LoginFile expired = good_for(-1h);
  states_.note_file(expired, clock_.now());
  for (const auto pause : {5s, 10s, 20s, 40s, 60s, 60s}) {
    EXPECT_FALSE(end_keeper(expired));
    EXPECT_EQ(state(), unreachable);
    EXPECT_EQ(code(), "login_unreachable");
    EXPECT_FALSE(may_wait());
    EXPECT_EQ(wait(), pause);
    EXPECT_FALSE(due());
    clock_.advance(pause);
    EXPECT_EQ(due(), KeeperTask::renew);
  }
  EXPECT_TRUE(end_keeper(good_for(8h)));
  EXPECT_EQ(state(), ok);
}

TEST_F(LoginStatesTest, ATryInVainWhileTheTokenIsGoodStopsNoWork) {
  const LoginFile soon = good_for(200s);
  states_.note_file(soon, clock_.now());
  EXPECT_FALSE(end_keeper(soon));
  EXPECT_EQ(state(), renewing);
  EXPECT_EQ(code(), "");
  EXPECT_FALSE(due());
  clock_.advance(5s);
  EXPECT_EQ(due(), KeeperTask::renew);
}

TEST_F(LoginStatesTest, AnEmptiedLoginIsLostUntilAnotherComes) {
  begin(good_for(300s));
  clock_.advance(10s);
  EXPECT_FALSE(end_keeper({}, false));
  EXPECT_EQ(state(), logged_out);
  EXPECT_EQ(code(), "agent_not_logged_in");
  EXPECT_EQ(wait(), 60s);
  EXPECT_FALSE(may_wait());
  EXPECT_FALSE(due()) << "nothing is tried";
  clock_.advance(1h);
  EXPECT_FALSE(due());
  states_.note_file(good_for(8h), clock_.now());
  EXPECT_EQ(state(), late) << "its program has to confirm it";
  end_keeper(good_for(8h));
  EXPECT_EQ(state(), ok);
}

TEST_F(LoginStatesTest, WithoutAFileTheProgramHasTheWord) {
  states_.note_file({}, clock_.now());
  EXPECT_EQ(state(), late);
  end_keeper({}, false);
  EXPECT_EQ(state(), logged_out);
}

TEST_F(LoginStatesTest, AProgramThatSaysNothingIsAskedSomeTimes) {
  states_.note_file({}, clock_.now());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(state(), late);
    end_keeper({}, std::nullopt);
    clock_.advance(1min);
  }
  end_keeper({}, std::nullopt);
  EXPECT_EQ(state(), logged_out);
}

TEST_F(LoginStatesTest, ALoginThatIsElsewhereIsNotOurs) {
  states_.note_file({}, clock_.now());
  end_keeper({}, true);
  EXPECT_EQ(state(), external);
  EXPECT_EQ(code(), "");
  states_.note_file(good_for(8h), clock_.now());
  EXPECT_EQ(state(), late);
}

TEST_F(LoginStatesTest, AnAbsentProgramIsNotALogout) {
  states_.note_file({}, clock_.now());
  states_.note_keeper(*due());
  states_.note_keeper_end({.was_there = false}, {}, clock_.now());
  EXPECT_EQ(state(), external);
  clock_.advance(5s);
  EXPECT_EQ(due(), KeeperTask::renew);
}

TEST_F(LoginStatesTest, ARefusedAgentForcesARenewalOnce) {
  begin(good_for(8h));
  const TimePoint begun = clock_.now();
  clock_.advance(1s);
  states_.note_refused(begun, clock_.now());
  EXPECT_EQ(state(), refused);
  EXPECT_EQ(code(), "login_renewing");
  EXPECT_TRUE(may_wait());
  EXPECT_EQ(due(), KeeperTask::force);
  EXPECT_TRUE(end_keeper(good_for(9h), std::nullopt));
  EXPECT_EQ(state(), ok);
  states_.note_refused(begun, clock_.now());
  EXPECT_EQ(state(), ok) << "that one had begun before";
}

TEST_F(LoginStatesTest, ARefusalAfterARenewalIsNotMendedByTheNextOne) {
  begin(good_for(8h));
  clock_.advance(1s);
  states_.note_refused(clock_.now(), clock_.now());
  EXPECT_TRUE(end_keeper(good_for(9h), std::nullopt));
  clock_.advance(1s);
  states_.note_refused(clock_.now(), clock_.now());
  EXPECT_EQ(state(), refused);
  EXPECT_EQ(code(), "agent_not_logged_in");
  EXPECT_FALSE(may_wait());
  EXPECT_FALSE(due()) << "no storm of renewals";
  clock_.advance(5s);
  EXPECT_EQ(due(), KeeperTask::force);
}

TEST_F(LoginStatesTest, ATokenThatCannotBeRenewedIsGoodUntilItsEnd) {
  LoginFile file = good_for(1h);
  file.has_refresh = false;
  states_.note_file(file, clock_.now());
  end_keeper(file);
  clock_.advance(58min);
  EXPECT_EQ(state(), ok);
  LoginStates refused_one = states_;
  refused_one.note_refused(clock_.now(), clock_.now());
  EXPECT_EQ(refused_one.state(clock_.now()), logged_out);
  clock_.advance(1min);
  EXPECT_FALSE(due());
  clock_.advance(1min);
  EXPECT_EQ(state(), logged_out);
}

TEST_F(LoginStatesTest, WhatAnotherProcessHasRenewedCounts) {
  const LoginFile expired = good_for(-1s);
  states_.note_file(expired, clock_.now());
  end_keeper(expired);
  EXPECT_EQ(state(), unreachable);
  states_.note_file(good_for(8h), clock_.now());
  EXPECT_EQ(state(), ok);
}

}  // namespace
}  // namespace clawdforge
