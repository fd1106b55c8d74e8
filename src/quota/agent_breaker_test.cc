#include "quota/agent_breaker.h"

#include <gtest/gtest.h>

#include "base/refusals.h"

namespace clawdforge {
namespace {
using namespace std::chrono_literals;

const AgentBreaker::SteadyTime kStart{};

std::optional<Failure> failure(std::string_view code, std::chrono::seconds retry_after = {}) {
  return fail_for_now(Errc::unavailable, code, "no", retry_after).error();
}

TEST(AgentBreaker, StaysOpenForOrdinaryFailures) {
  AgentBreaker breaker;
  auto failed = failure("agent_exit", 60s);
  breaker.note(failed, kStart, false);
  EXPECT_FALSE(breaker.refusal(kStart));
}

TEST(AgentBreaker, ClosesWhenNotLoggedInAndTellsHowLong) {
  AgentBreaker breaker;
  auto failed = failure("agent_not_logged_in");
  breaker.note(failed, kStart, false);
  EXPECT_EQ(failed->retry_after, 30s);
  const auto refusal = breaker.refusal(kStart + 10s);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "agent_not_logged_in");
  EXPECT_EQ(refusal->message, "no");
  EXPECT_EQ(refusal->retry_after, 20s);
}

TEST(AgentBreaker, LetsOneThroughToTryWhenTheTimeIsUp) {
  AgentBreaker breaker;
  auto failed = failure("agent_not_logged_in");
  breaker.note(failed, kStart, false);
  ASSERT_FALSE(breaker.refusal(kStart + 30s));
  EXPECT_TRUE(breaker.pass());
  EXPECT_TRUE(breaker.refusal(kStart + 31s)) << "one is enough";
  breaker.give_up();
  EXPECT_FALSE(breaker.refusal(kStart + 31s)) << "the first showed nothing";
  EXPECT_TRUE(breaker.pass());
  std::optional<Failure> success;
  breaker.note(success, kStart + 32s, true);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_FALSE(breaker.refusal(kStart + 32s));
}

TEST(AgentBreaker, ARunFromBeforeTheClosingDoesNotEndTheTrial) {
  AgentBreaker breaker;
  auto failed = failure("agent_not_logged_in");
  breaker.note(failed, kStart, false);
  ASSERT_TRUE(breaker.pass());
  auto died = failure("agent_signal");
  breaker.note(died, kStart + 31s, false);
  EXPECT_TRUE(breaker.refusal(kStart + 31s));
}

TEST(AgentBreaker, StaysClosedWhenTheTrialDiesWithoutAResult) {
  AgentBreaker breaker;
  auto failed = failure("agent_not_logged_in");
  breaker.note(failed, kStart, false);
  ASSERT_FALSE(breaker.refusal(kStart + 30s));
  EXPECT_TRUE(breaker.pass());
  auto died = failure("agent_signal");
  breaker.note(died, kStart + 31s, true);
  EXPECT_FALSE(breaker.is_open());
  EXPECT_FALSE(breaker.refusal(kStart + 31s)) << "the next one tries";
}

TEST(AgentBreaker, ClosesAgainWhenTheTrialFailsTheSameWay) {
  AgentBreaker breaker;
  auto failed = failure("account_limit", 100s);
  breaker.note(failed, kStart, false);
  EXPECT_TRUE(breaker.refusal(kStart + 99s));
  ASSERT_FALSE(breaker.refusal(kStart + 100s));
  EXPECT_TRUE(breaker.pass());
  breaker.note(failed, kStart + 101s, true);
  EXPECT_TRUE(breaker.refusal(kStart + 102s));
}

TEST(AgentBreaker, LooksOnceInAWhileAlsoBeforeAFarTime) {
  AgentBreaker breaker;
  auto failed = failure("account_limit", 5h);
  breaker.note(failed, kStart, false);
  const auto refusal = breaker.refusal(kStart + 30min);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after, 4h + 30min);
  EXPECT_FALSE(breaker.refusal(kStart + 1h));
}

}  // namespace
}  // namespace clawdforge
