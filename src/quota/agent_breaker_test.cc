#include "quota/agent_breaker.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {
using namespace std::chrono_literals;

const AgentBreaker::SteadyTime kStart{};

std::optional<Failure> failure(Cause cause, std::chrono::seconds retry_after = {}) {
  return Failure{.kind = Errc::unavailable,
                 .code = "a_code",
                 .message = "no",
                 .retry_after = retry_after,
                 .cause = cause};
}

struct AgentBreakerTest : ::testing::Test {
  // A run that is let through and ends so.
  std::optional<Failure> end_run(std::optional<Failure> failed, AgentBreaker::SteadyTime now) {
    breaker.let_through().settle(failed, now);
    return failed;
  }

  AgentBreaker breaker{AgentBreaker::Scope::agent};
};

TEST_F(AgentBreakerTest, StaysOpenForOrdinaryFailures) {
  end_run(failure(Cause::agent_exited, 60s), kStart);
  EXPECT_FALSE(breaker.refusal(kStart));
}

TEST_F(AgentBreakerTest, ShutsWithoutALoginAndTellsHowLong) {
  const auto failed = end_run(failure(Cause::login), kStart);
  EXPECT_EQ(failed->retry_after, 30s);
  const auto refusal = breaker.refusal(kStart + 10s);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "a_code");
  EXPECT_EQ(refusal->message, "no");
  EXPECT_EQ(refusal->retry_after, 20s);
}

TEST_F(AgentBreakerTest, LetsOneThroughToTryWhenTheTimeIsUp) {
  end_run(failure(Cause::login), kStart);
  ASSERT_FALSE(breaker.refusal(kStart + 30s));
  {
    const auto trial = breaker.let_through();
    EXPECT_TRUE(breaker.refusal(kStart + 31s)) << "one is enough";
  }
  EXPECT_FALSE(breaker.refusal(kStart + 31s)) << "the first said nothing";
  end_run(std::nullopt, kStart + 32s);
  EXPECT_FALSE(breaker.is_shut());
  EXPECT_FALSE(breaker.refusal(kStart + 32s));
}

TEST_F(AgentBreakerTest, ATrialThatIsMovedIsStillTheOne) {
  end_run(failure(Cause::login), kStart);
  auto trial = breaker.let_through();
  auto moved = std::move(trial);
  EXPECT_TRUE(breaker.refusal(kStart + 31s));
  std::optional<Failure> success;
  moved.settle(success, kStart + 32s);
  EXPECT_FALSE(breaker.is_shut());
}

TEST_F(AgentBreakerTest, ARunFromBeforeTheShuttingDoesNotEndTheTrial) {
  auto earlier = breaker.let_through();
  end_run(failure(Cause::login), kStart);
  const auto trial = breaker.let_through();
  auto died = failure(Cause::agent_exited);
  earlier.settle(died, kStart + 31s);
  EXPECT_TRUE(breaker.refusal(kStart + 31s));
}

TEST_F(AgentBreakerTest, ARunFromBeforeTheShuttingOpensItWhenItSucceeds) {
  auto earlier = breaker.let_through();
  end_run(failure(Cause::account_limit), kStart);
  std::optional<Failure> success;
  earlier.settle(success, kStart + 1s);
  EXPECT_FALSE(breaker.is_shut());
}

TEST_F(AgentBreakerTest, ShutsAgainWhenTheTrialFailsTheSameWay) {
  end_run(failure(Cause::account_limit, 100s), kStart);
  EXPECT_TRUE(breaker.refusal(kStart + 99s));
  ASSERT_FALSE(breaker.refusal(kStart + 100s));
  end_run(failure(Cause::account_limit, 100s), kStart + 101s);
  EXPECT_TRUE(breaker.refusal(kStart + 102s));
}

TEST_F(AgentBreakerTest, LooksOnceInAWhileAlsoBeforeAFarTime) {
  end_run(failure(Cause::account_limit, 5h), kStart);
  const auto refusal = breaker.refusal(kStart + 30min);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after, 4h + 30min);
  EXPECT_FALSE(breaker.refusal(kStart + 1h));
}

TEST_F(AgentBreakerTest, OpensWhenTheAgentItselfSaysThatSomethingElseFailed) {
  end_run(failure(Cause::login), kStart);
  end_run(failure(Cause::agent_said_so), kStart + 30s);
  EXPECT_FALSE(breaker.is_shut());
}

// Such as no_resources, out_of_memory, api_unreachable, agent_exit, disk_full.
class SaysNothing : public AgentBreakerTest, public ::testing::WithParamInterface<Cause> {};

TEST_P(SaysNothing, AFailureThatSaysNothingOfTheLoginLeavesTheBreakerAsItIs) {
  end_run(failure(GetParam()), kStart);
  EXPECT_FALSE(breaker.is_shut());
  for (const Cause cause : {Cause::login, Cause::account_limit}) {
    end_run(failure(cause), kStart);
    end_run(failure(GetParam()), kStart + 61s);
    EXPECT_TRUE(breaker.is_shut());
    EXPECT_FALSE(breaker.refusal(kStart + 61s)) << "the next one tries";
  }
}

INSTANTIATE_TEST_SUITE_P(Causes, SaysNothing,
                         ::testing::Values(Cause::other, Cause::agent_missing, Cause::agent_exited,
                                           Cause::cancelled, Cause::interrupted, Cause::deadline,
                                           Cause::maybe_kept, Cause::not_begun));

}  // namespace
}  // namespace clawdforge
