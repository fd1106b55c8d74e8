#include "ledger/jobs/job_rows.h"

#include "ledger/ledger_contract_fixture.h"

namespace clawdforge {
namespace {

constexpr JobLimits kManyJobs{.queued_max_per_app = 100};
constexpr std::chrono::seconds kPauses[] = {std::chrono::seconds(1), std::chrono::seconds(10)};

Job job_named(const std::string& id, const std::string& session = "", int ready_at = 100) {
  Job job;
  job.id = JobId(id);
  job.app = AppName("a");
  job.kind = session.empty() ? JobKind::run : JobKind::turn;
  job.session_id = SessionId(session);
  job.meta = "{}";
  job.created_at = at_second(100);
  job.ready_at = at_second(ready_at);
  return job;
}

class LedgerJobs : public LedgerContract {
 protected:
  void add(Job job) { ASSERT_TRUE(await(ledger().jobs.add(std::move(job), "{}", kManyJobs))); }
  std::string ready_at(int second, bool leaves_out_runs = false) {
    const auto waiting =
        await(ledger().jobs.waiting(AppName("a"), at_second(second), leaves_out_runs, 100));
    std::string ids;
    for (const Job& job : waiting.value().ready) ids += job.id.str() + " ";
    return ids;
  }
  Job find(const std::string& id) {
    return await(ledger().jobs.find(AppName("a"), JobId(id))).value().job;
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, LedgerJobs, databases(), name_of_database);

TEST_P(LedgerJobs, AnAppHasNoMoreQueuedThanItMay) {
  open();
  constexpr JobLimits kTwo{.queued_max_per_app = 2};
  EXPECT_TRUE(await(ledger().jobs.add(job_named("1"), "{}", kTwo)));
  EXPECT_TRUE(await(ledger().jobs.add(job_named("2"), "{}", kTwo)));
  EXPECT_EQ(await(ledger().jobs.add(job_named("3"), "{}", kTwo)).error().code, "too_many_jobs");
  EXPECT_TRUE(await(ledger().jobs.begin(job_named("1"), at_second(1))).value());
  EXPECT_TRUE(await(ledger().jobs.add(job_named("3"), "{}", kTwo))) << "what runs is not queued";
}

TEST_P(LedgerJobs, TheFirstOfEachSessionAndEachRunMayStart) {
  open();
  add(job_named("1", "s"));
  add(job_named("2"));
  add(job_named("3", "s"));
  add(job_named("4", "t", 500));
  add(job_named("5", "t"));
  EXPECT_EQ(ready_at(100), "1 2 5 ") << "4 waits for its time, and holds up nothing";
  EXPECT_EQ(ready_at(100, true), "1 5 ");
  EXPECT_TRUE(await(ledger().jobs.begin(job_named("1", "s"), at_second(101))).value());
  EXPECT_EQ(ready_at(101), "2 5 ") << "1 runs";
  ASSERT_TRUE(await(ledger().jobs.end({.id = JobId("1"), .state = JobState::succeeded})));
  EXPECT_EQ(ready_at(101), "2 3 5 ");
  const auto waiting = await(ledger().jobs.waiting(AppName("a"), at_second(101), false, 1));
  EXPECT_EQ(waiting.value().ready.size(), 1U);
  EXPECT_EQ(waiting.value().next_ready_at, at_second(500));
}

TEST_P(LedgerJobs, WhatIsCancelledDoesNotBeginAndWhatHasEndedStaysSo) {
  open();
  add(job_named("1"));
  EXPECT_EQ(await(ledger().jobs.cancel(AppName("b"), JobId("1"), at_second(1))).error().code,
            "job_not_found");
  EXPECT_TRUE(await(ledger().jobs.cancel(AppName("a"), JobId("1"), at_second(1))).value());
  EXPECT_FALSE(await(ledger().jobs.begin(job_named("1"), at_second(2))).value());
  EXPECT_FALSE(await(ledger().jobs.cancel(AppName("a"), JobId("1"), at_second(3))).value());
  ASSERT_TRUE(await(ledger().jobs.end(
      {.id = JobId("1"), .state = JobState::succeeded, .ended_at = at_second(9)})));
  EXPECT_EQ(find("1").state, JobState::cancelled);
  EXPECT_EQ(find("1").ended_at, at_second(1));
  EXPECT_FALSE(await(ledger().jobs.body_of(JobId("1"), Lane())).value());
}

TEST_P(LedgerJobs, WhatAnEndedLifeHadRunningIsInterruptedOrQueuedAgain) {
  open();
  add(job_named("1"));
  Job twice = job_named("2");
  twice.attempts_max = 2;
  add(twice);
  add(job_named("3"));
  JobRows other(ledger().worker, InstanceId("ended"));
  ASSERT_TRUE(await(other.begin(job_named("1"), at_second(101))));
  ASSERT_TRUE(await(other.begin(job_named("2"), at_second(101))));
  ASSERT_TRUE(await(ledger().instances.begin("1", 1, at_second(200))));
  const auto left = await(ledger().jobs.recover(
      at_second(200), kPauses,
      {.state = JobState::interrupted, .ended_at = at_second(200), .status = 503}));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->interrupted, 1);
  EXPECT_EQ(left->requeued, 1);
  EXPECT_EQ(find("1").state, JobState::interrupted);
  EXPECT_EQ(find("1").status, 503);
  EXPECT_EQ(find("2").state, JobState::queued);
  EXPECT_EQ(find("2").ready_at, at_second(201));
  EXPECT_EQ(find("2").attempts, 1);
  EXPECT_EQ(ready_at(200), "3 ");
}

}  // namespace
}  // namespace clawdforge
