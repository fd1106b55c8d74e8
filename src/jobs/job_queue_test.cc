#include "jobs/job_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace clawdforge {
namespace {

TimePoint second(int number) { return TimePoint(std::chrono::seconds(number)); }

Job job_of(const std::string& app, const std::string& id, JobKind kind = JobKind::run) {
  Job job;
  job.id = JobId(id);
  job.app = AppName(app);
  job.kind = kind;
  return job;
}

TEST(JobQueue, AnAppIsLookedAtOnceWhenItsTimeHasCome) {
  JobQueue queue;
  EXPECT_FALSE(queue.next_app(second(9)));
  EXPECT_FALSE(queue.next_time());
  queue.note_ready(AppName("a"), second(5));
  queue.note_ready(AppName("a"), second(7));
  EXPECT_EQ(queue.next_time(), second(5));
  EXPECT_FALSE(queue.next_app(second(4)));
  EXPECT_EQ(queue.next_app(second(5)), AppName("a"));
  EXPECT_FALSE(queue.next_app(second(9))) << "what was noted is forgotten with the look";
}

TEST(JobQueue, TheAppWithTheFewestInHandComesFirstAndEqualsTakeTurns) {
  JobQueue queue;
  queue.take(job_of("a", "1"));
  queue.note_ready(AppName("a"), second(1));
  queue.note_ready(AppName("b"), second(1));
  queue.note_ready(AppName("c"), second(1));
  EXPECT_EQ(queue.next_app(second(1)), AppName("b"));
  queue.note_ready(AppName("b"), second(1));
  EXPECT_EQ(queue.next_app(second(1)), AppName("c")) << "b was served last";
  EXPECT_EQ(queue.next_app(second(1)), AppName("b"));
  EXPECT_EQ(queue.next_app(second(1)), AppName("a"));
}

TEST(JobQueue, OneRunWaitsAtTheDoorAndTurnsDoNot) {
  JobQueue queue;
  const Job run = job_of("a", "1");
  queue.take(job_of("a", "0", JobKind::turn));
  EXPECT_FALSE(queue.has_run_at_door(AppName("a")));
  queue.take(run);
  EXPECT_TRUE(queue.has_run_at_door(AppName("a")));
  EXPECT_TRUE(queue.is_in_hand(run.id));
  queue.begun(run);
  EXPECT_FALSE(queue.has_run_at_door(AppName("a")));
  EXPECT_EQ(queue.in_hand(), 2U);
  queue.put_back(run);
  queue.put_back(run);
  EXPECT_EQ(queue.in_hand(), 1U) << "a job is put back once";
}

TEST(JobQueue, APauseHoldsUpItsAppAlone) {
  JobQueue queue;
  queue.note_ready(AppName("a"), second(1));
  queue.note_ready(AppName("b"), second(3));
  queue.pause(AppName("a"), second(8));
  EXPECT_FALSE(queue.next_app(second(2)));
  EXPECT_EQ(queue.next_time(), second(3));
  EXPECT_EQ(queue.next_app(second(3)), AppName("b"));
  EXPECT_EQ(queue.next_time(), second(8));
  queue.resume(AppName("a"));
  EXPECT_EQ(queue.next_app(second(3)), AppName("a"));
}

TEST(JobQueue, NoMoreAreInHandThanMayBe) {
  JobQueue queue;
  for (std::size_t i = 0; i < kJobsInHandMaxPerApp; ++i) {
    queue.take(job_of("a", std::to_string(i), JobKind::turn));
  }
  queue.note_ready(AppName("a"), second(1));
  queue.note_ready(AppName("b"), second(1));
  EXPECT_EQ(queue.next_app(second(1)), AppName("b"));
  EXPECT_FALSE(queue.next_app(second(1)));
  queue.put_back(job_of("a", "0"));
  EXPECT_EQ(queue.next_app(second(1)), AppName("a"));
  queue.note_ready(AppName("z"), second(1));
  for (std::size_t i = queue.in_hand(); i < kJobsInHandMax; ++i) {
    queue.take(job_of("app" + std::to_string(i % 5), "x" + std::to_string(i), JobKind::turn));
  }
  EXPECT_FALSE(queue.next_app(second(1)));
  EXPECT_FALSE(queue.next_time());
}

}  // namespace
}  // namespace clawdforge
