#include "quota/door.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {
using namespace std::chrono_literals;

const Door::SteadyTime kStart{};

std::optional<AgentFailure> failure(std::string_view code, std::chrono::seconds retry_after = {}) {
  return AgentFailure{Errc::unavailable, code, "no", retry_after};
}

TEST(Door, StaysOpenForOrdinaryFailures) {
  Door door;
  auto failed = failure("agent_exit", 60s);
  door.note(failed, kStart, false);
  EXPECT_FALSE(door.refusal(kStart));
}

TEST(Door, ClosesWhenNotLoggedInAndTellsHowLong) {
  Door door;
  auto failed = failure("agent_not_logged_in");
  door.note(failed, kStart, false);
  EXPECT_EQ(failed->retry_after, 30s);
  const auto refusal = door.refusal(kStart + 10s);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "agent_not_logged_in");
  EXPECT_EQ(refusal->sentence, "no");
  EXPECT_EQ(refusal->retry_after, 20s);
}

TEST(Door, LetsOneThroughToTryWhenTheTimeIsUp) {
  Door door;
  auto failed = failure("agent_not_logged_in");
  door.note(failed, kStart, false);
  ASSERT_FALSE(door.refusal(kStart + 30s));
  EXPECT_TRUE(door.pass());
  EXPECT_TRUE(door.refusal(kStart + 31s)) << "one is enough";
  door.give_up();
  EXPECT_FALSE(door.refusal(kStart + 31s)) << "the first showed nothing";
  EXPECT_TRUE(door.pass());
  std::optional<AgentFailure> success;
  door.note(success, kStart + 32s, true);
  EXPECT_TRUE(door.is_open());
  EXPECT_FALSE(door.refusal(kStart + 32s));
}

TEST(Door, ARunFromBeforeTheClosingDoesNotEndTheTrial) {
  Door door;
  auto failed = failure("agent_not_logged_in");
  door.note(failed, kStart, false);
  ASSERT_TRUE(door.pass());
  auto died = failure("agent_signal");
  door.note(died, kStart + 31s, false);
  EXPECT_TRUE(door.refusal(kStart + 31s));
}

TEST(Door, StaysClosedWhenTheTrialDiesWithoutAResult) {
  Door door;
  auto failed = failure("agent_not_logged_in");
  door.note(failed, kStart, false);
  ASSERT_FALSE(door.refusal(kStart + 30s));
  EXPECT_TRUE(door.pass());
  auto died = failure("agent_signal");
  door.note(died, kStart + 31s, true);
  EXPECT_FALSE(door.is_open());
  EXPECT_FALSE(door.refusal(kStart + 31s)) << "the next one tries";
}

TEST(Door, ClosesAgainWhenTheTrialFailsTheSameWay) {
  Door door;
  auto failed = failure("account_limit", 100s);
  door.note(failed, kStart, false);
  EXPECT_TRUE(door.refusal(kStart + 99s));
  ASSERT_FALSE(door.refusal(kStart + 100s));
  EXPECT_TRUE(door.pass());
  door.note(failed, kStart + 101s, true);
  EXPECT_TRUE(door.refusal(kStart + 102s));
}

TEST(Door, LooksOnceInAWhileAlsoBeforeAFarTime) {
  Door door;
  auto failed = failure("account_limit", 5h);
  door.note(failed, kStart, false);
  const auto refusal = door.refusal(kStart + 30min);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after, 4h + 30min);
  EXPECT_FALSE(door.refusal(kStart + 1h));
}

}  // namespace
}  // namespace clawdforge
