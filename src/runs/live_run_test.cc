#include "runs/live_run.h"

#include <gtest/gtest.h>

#include "base/async/run_to_end.h"
#include "quota/quota.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

class LiveRunTest : public ::testing::Test {
 protected:
  static Quota::Options one_place() {
    Quota::Options options;
    options.runs_max = 1;
    options.queued_runs_max = 2;
    return options;
  }
  std::shared_ptr<LiveRun> run(std::chrono::seconds timeout = 60s) {
    RunRequest request;
    request.agent = "claude";
    request.timeout = timeout;
    request.received = std::chrono::steady_clock::now();
    auto ticket = quota_.admit(*app_, {WorkKind::run, request.agent, ""});
    return std::make_shared<LiveRun>(io_.get_executor(), registry_, app_, std::move(request),
                                     std::move(*ticket));
  }

  IoContext io_{1};
  Metrics metrics_;
  Quota quota_{one_place(), metrics_};
  LiveRun::Registry registry_;
  const std::shared_ptr<const App> app_ = std::make_shared<App>();
};

TEST_F(LiveRunTest, IsInTheRegistryForAsLongAsItLives) {
  auto live = run();
  EXPECT_EQ(registry_.size(), 1u);
  live.reset();
  EXPECT_TRUE(registry_.empty());
}

TEST_F(LiveRunTest, TheFirstReasonToStopCounts) {
  const auto live = run();
  live->stop(RunStop::timed_out);
  live->stop(RunStop::shutdown);
  EXPECT_EQ(live->stopped(), RunStop::timed_out);
}

TEST_F(LiveRunTest, AfterTheAnswerNothingStopsIt) {
  const auto live = run();
  RunOutcome outcome;
  outcome.run_id = RunId("id");
  live->set_answer(std::move(outcome));
  live->stop(RunStop::caller_gone);
  EXPECT_EQ(live->stopped(), RunStop::none);
  const auto answer = run_to_end(io_, live->answer());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->run_id, "id");
}

TEST_F(LiveRunTest, ARunThatIsStoppedLeavesTheQueue) {
  const auto first = run();
  const auto second = run();
  EXPECT_FALSE(second->ticket->has_place());
  second->stop(RunStop::caller_gone);
  EXPECT_FALSE(run_to_end(io_, second->ticket->ready()));
  EXPECT_TRUE(first->ticket->has_place());
}

TEST_F(LiveRunTest, ItsTimeEndsIt) {
  const auto live = run(0s);
  live->start_deadline();
  io_.run_for(1s);
  EXPECT_EQ(live->stopped(), RunStop::timed_out);
}

TEST(NeverStarted, SaysWhyAndWhetherWaitingHelps) {
  EXPECT_EQ(never_started(RunStop::timed_out).error().code, "queue_timeout");
  EXPECT_EQ(never_started(RunStop::caller_gone).error().kind, Errc::gone);
  const Failure interrupted = never_started(RunStop::shutdown).error();
  EXPECT_EQ(interrupted.cause, Cause::interrupted);
  EXPECT_GT(interrupted.retry_after.count(), 0);
}

}  // namespace
}  // namespace clawdforge
