#include "jobs/job_verdict.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using Next = Verdict::Next;

JobAnswer answer(int status, std::string code = {}, int retry_after = 0) {
  return {
      .status = status, .code = std::move(code), .retry_after = std::chrono::seconds(retry_after)};
}

TEST(JobVerdict, AnAnswerEndsTheJob) {
  EXPECT_EQ(verdict_on(answer(200), true, false, 1, 1, 0).state, JobState::succeeded);
  const Verdict failed = verdict_on(answer(422, "validation_failed"), false, false, 1, 5, 0);
  EXPECT_EQ(failed.next, Next::end);
  EXPECT_EQ(failed.state, JobState::failed);
}

TEST(JobVerdict, OnlyFailuresThatMayPassAreTriedAgainWithGrowingPauses) {
  for (const int status : {502, 503, 504}) {
    const Verdict once = verdict_on(answer(status, "agent_exit"), true, false, 1, 1, 0);
    EXPECT_EQ(once.next, Next::end);
    EXPECT_EQ(once.state, JobState::failed);
    std::chrono::milliseconds before{0};
    for (std::int64_t attempt = 1; attempt < kJobAttemptsMax; ++attempt) {
      const Verdict again =
          verdict_on(answer(status, "agent_exit"), true, false, attempt, kJobAttemptsMax, 0);
      EXPECT_EQ(again.next, Next::retry);
      EXPECT_GT(again.pause, before);
      before = again.pause;
    }
    EXPECT_EQ(
        verdict_on(answer(status, "agent_exit"), true, false, kJobAttemptsMax, kJobAttemptsMax, 0)
            .next,
        Next::end);
  }
  EXPECT_EQ(verdict_on(answer(429, "account_limit"), true, false, 1, 5, 0).next, Next::end);
  EXPECT_EQ(verdict_on(answer(500, "internal"), true, false, 1, 5, 0).next, Next::end);
}

TEST(JobVerdict, ALimitBeforeTheBeginningIsWaitedFor) {
  const Verdict rate = verdict_on(answer(429, "rate_limited", 7), false, false, 1, 1, 0);
  EXPECT_EQ(rate.next, Next::wait);
  EXPECT_EQ(rate.pause, std::chrono::seconds(7));
  // An owner may raise a budget that does not end by itself.
  const Verdict total = verdict_on(answer(429, "budget_exhausted"), false, false, 1, 1, 0);
  EXPECT_EQ(total.next, Next::wait);
  EXPECT_EQ(total.pause, kLimitLookMax);
  EXPECT_EQ(verdict_on(answer(429, "budget_exhausted", 86'400), false, false, 1, 1, 0).pause,
            kLimitLookMax);
  const Verdict first = verdict_on(answer(429, "too_many_runs", 2), false, false, 1, 1, 0);
  const Verdict tenth = verdict_on(answer(429, "too_many_runs", 2), false, false, 1, 1, 10);
  EXPECT_EQ(first.pause, kPlaceLookMin);
  EXPECT_EQ(tenth.pause, kPlaceLookMax);
  EXPECT_EQ(verdict_on(answer(503, "queue_full", 2), false, false, 1, 1, 0).next, Next::wait);
}

TEST(JobVerdict, WhatConcernsOneJobDoesNotHoldUpOthers) {
  EXPECT_EQ(verdict_on(answer(429, "account_limit", 60), false, false, 1, 1, 0).next,
            Next::postpone);
  EXPECT_EQ(verdict_on(answer(409, "turn_queue_full", 1), false, false, 1, 1, 0).next,
            Next::postpone);
}

TEST(JobVerdict, AStopLeavesWhatHasNotBegunAndInterruptsWhatHas) {
  EXPECT_EQ(verdict_on(answer(503, "interrupted"), false, false, 1, 1, 0).next, Next::leave);
  const Verdict begun = verdict_on(answer(503, "interrupted"), true, false, 1, 1, 0);
  EXPECT_EQ(begun.next, Next::end);
  EXPECT_EQ(begun.state, JobState::interrupted);
  EXPECT_EQ(verdict_on(answer(503, "interrupted"), true, false, 1, 2, 0).next, Next::retry);
}

TEST(JobVerdict, WhatIsNotWantedIsCancelledUnlessItWentWell) {
  EXPECT_EQ(verdict_on(answer(410, "cancelled"), true, true, 1, 5, 0).state, JobState::cancelled);
  EXPECT_EQ(verdict_on(answer(502, "agent_exit"), true, true, 1, 5, 0).state, JobState::cancelled);
  EXPECT_EQ(verdict_on(answer(200), true, true, 1, 1, 0).state, JobState::succeeded);
  JobAnswer turn = answer(200);
  turn.body = R"({"ok":true,"stop_reason":"cancelled"})";
  EXPECT_EQ(verdict_on(turn, true, true, 1, 1, 0).state, JobState::cancelled);
  EXPECT_EQ(verdict_on(answer(401, "token_revoked"), true, false, 1, 5, 0).state,
            JobState::cancelled);
}

}  // namespace
}  // namespace clawdforge
