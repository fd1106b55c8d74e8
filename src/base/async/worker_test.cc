#include "base/async/worker.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/async/run_to_end.h"
#include "base/async/task_group.h"
#include "base/refusals.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> busy() { return fail(Errc::unavailable, "busy", "Too much waits."); }
std::unexpected<Failure> stalled() { return fail(Errc::unavailable, "stalled", "It is stuck."); }

class WorkerTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCallsMax = 100;

  // Keeps the worker's thread busy until open() is called.
  class Gate {
   public:
    explicit Gate(Worker& worker) {
      worker.post(Lane(), [opened = opened_.get_future()]() mutable { opened.wait(); });
    }
    void open() { opened_.set_value(); }

   private:
    std::promise<void> opened_;
  };

  void ask(std::move_only_function<Result<void>()> work,
           std::move_only_function<void(Result<void>)> answer) {
    boost::asio::co_spawn(
        io_, worker_.call(Lane(), std::move(work)),
        [answer = std::move(answer)](std::exception_ptr thrown, Result<void> result) mutable {
          ASSERT_FALSE(thrown);
          answer(std::move(result));
        });
  }

  template <class T>
  T await(Task<T> task) {
    return run_to_end(io_, std::move(task));
  }

  IoContext io_{1};
  Worker worker_{io_.get_executor(),
                 {.calls_max = kCallsMax,
                  .lane_calls_max = kCallsMax,
                  .stall_max = std::chrono::hours(1),
                  .busy = busy,
                  .stalled = stalled}};
};

TEST_F(WorkerTest, WorksOnAnotherThreadAndAnswersOnThisOne) {
  const auto here = std::this_thread::get_id();
  std::thread::id worked;
  std::thread::id answered;
  ask(
      [&]() -> Result<void> {
        worked = std::this_thread::get_id();
        return {};
      },
      [&](Result<void> result) {
        EXPECT_TRUE(result);
        answered = std::this_thread::get_id();
      });
  io_.run();
  EXPECT_NE(worked, here);
  EXPECT_NE(worked, std::thread::id());
  EXPECT_EQ(answered, here);
}

TEST_F(WorkerTest, DoesAllOfALaneInOrderOfArrival) {
  std::vector<int> done;
  for (int i = 0; i < 100; i += 2) {
    ask(
        [&done, i]() -> Result<void> {
          done.push_back(i);
          return {};
        },
        [](Result<void> result) { EXPECT_TRUE(result); });
    boost::asio::post(io_, [&, i] { worker_.post(Lane(), [&done, i] { done.push_back(i + 1); }); });
  }
  io_.run();
  worker_.stop();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST_F(WorkerTest, AnErrorAndAnExceptionAreAnswers) {
  auto failed = await(worker_.call(Lane(), []() -> Result<void> {
    return fail(Errc::not_found, "no_such_thing", "There is none.");
  }));
  EXPECT_EQ(failed.error().code, "no_such_thing");
  auto thrown =
      await(worker_.call(Lane(), []() -> Result<void> { throw std::runtime_error("broken"); }));
  EXPECT_EQ(thrown.error().kind, Errc::internal);
  EXPECT_EQ(thrown.error().detail, "broken");
}

TEST_F(WorkerTest, GivesTheValueOfTheWork) {
  auto made = std::make_unique<int>(7);  // neither the work nor its value can be copied
  auto value = await(worker_.call(Lane(), [made = std::move(made)]() mutable {
    return Result<std::unique_ptr<int>>(std::move(made));
  }));
  ASSERT_TRUE(value);
  EXPECT_EQ(**value, 7);
  auto failed = await(worker_.call(Lane(), []() -> Result<int> { return out_of_memory(); }));
  EXPECT_EQ(failed.error().code, "out_of_memory");
}

TEST_F(WorkerTest, RefusesCallsWhenTooMuchWaitsAndLosesNoCleaningUp) {
  Gate gate(worker_);
  std::size_t done = 0;
  std::size_t refused = 0;
  std::size_t cleaned = 0;
  for (std::size_t i = 0; i < kCallsMax + 10; ++i) {
    ask([]() -> Result<void> { return {}; },
        [&](Result<void> result) {
          result ? ++done : ++refused;
          if (result) return;
          EXPECT_EQ(result.error().code, "busy");
        });
  }
  while (refused < 10) io_.run_one();
  for (int i = 0; i < 100; ++i) worker_.post(Lane(), [&cleaned] { ++cleaned; });
  gate.open();
  io_.run();
  EXPECT_EQ(done, kCallsMax);
  EXPECT_EQ(refused, 10u);
  EXPECT_TRUE(await(worker_.call(Lane(), []() -> Result<void> { return {}; })))
      << "there is room again";
  worker_.stop();
  EXPECT_EQ(cleaned, 100u);
}

TEST_F(WorkerTest, StopFinishesWhatIsQueuedAndRefusesTheRest) {
  bool is_answered = false;
  int cleaned = 0;
  ask([]() -> Result<void> { return {}; },
      [&](Result<void> result) { is_answered = result.has_value(); });
  io_.poll();  // the call is made
  worker_.post(Lane(), [&] { ++cleaned; });
  worker_.stop();
  EXPECT_EQ(cleaned, 1);
  worker_.post(Lane(), [&] { ++cleaned; });
  EXPECT_EQ(await(worker_.call(Lane(), []() -> Result<void> { return {}; })).error().code, "busy");
  io_.restart();
  io_.run();
  EXPECT_TRUE(is_answered);
  EXPECT_EQ(cleaned, 1);
}

TEST_F(WorkerTest, LongWorkInStepsLetsOthersGoInBetween) {
  std::vector<std::string> done;
  Gate gate(worker_);
  worker_.post_in_steps(Lane(), [&, left = 3]() mutable {
    done.push_back("step");
    return --left > 0;
  });
  worker_.post(Lane(), [&] { done.push_back("other"); });
  gate.open();
  // It runs after all the others, whichever of them the thread has taken together.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(await(worker_.call(Lane(), []() -> Result<void> { return {}; })));
  }
  worker_.stop();
  EXPECT_EQ(done, (std::vector<std::string>{"step", "other", "step", "step"}));
}

TEST_F(WorkerTest, AnAppThatFloodsTheQueueDelaysAnotherByOneJob) {
  std::vector<std::string> done;
  const auto note = [&done](const char* name) { return [&done, name] { done.push_back(name); }; };
  Gate gate(worker_);
  for (int i = 0; i < 50; ++i) worker_.post(Lane(AppName("greedy")), note("greedy"));
  worker_.post_in_steps(Lane(AppName("greedy")), [] { return false; });
  worker_.post(Lane(AppName("modest")), note("first"));
  worker_.post(Lane(AppName("modest")), note("second"));
  worker_.post(Lane(), note("own"));
  gate.open();
  worker_.stop();
  ASSERT_EQ(done.size(), 53u);
  done.resize(5);
  EXPECT_EQ(done, (std::vector<std::string>{"greedy", "first", "own", "greedy", "second"}));
}

TEST_F(WorkerTest, OneAppsCallsDoNotFillTheQueueForTheOthers) {
  Worker worker(io_.get_executor(), {.calls_max = 4,
                                     .lane_calls_max = 3,
                                     .stall_max = std::chrono::hours(1),
                                     .busy = busy,
                                     .stalled = stalled});
  Gate gate(worker);
  std::string taken;
  const auto ask_as = [&](const char* app) {
    boost::asio::co_spawn(
        io_, worker.call(Lane(AppName(app)), []() -> Result<void> { return {}; }),
        [&taken](std::exception_ptr, Result<void> result) { taken += result ? '1' : '0'; });
    io_.restart();
    io_.poll();
  };
  for (const char* app : {"greedy", "greedy", "greedy"}) ask_as(app);
  EXPECT_EQ(taken, "");
  ask_as("greedy");
  EXPECT_EQ(taken, "0") << "its lane is full";
  ask_as("modest");
  EXPECT_EQ(taken, "0");
  ask_as("other");
  EXPECT_EQ(taken, "00") << "all lanes together are full";
  ask_as("");
  EXPECT_EQ(taken, "00") << "the gateway's own work counts for itself";
  gate.open();
  io_.restart();
  io_.run();
  EXPECT_EQ(taken, "0011111");
}

TEST_F(WorkerTest, StopDoesNotWaitForTheLastStep) {
  int steps = 0;
  worker_.post_in_steps(Lane(), [&] {
    ++steps;
    return true;  // an end never comes
  });
  worker_.stop();
  EXPECT_GE(steps, 1);
}

Task<void> note_answer(Worker* worker, std::optional<bool>* answer) {
  const auto called = co_await worker->call(Lane(), []() -> Result<void> { return {}; });
  *answer = called.has_value();
}

TEST_F(WorkerTest, ACallIsAnsweredAlsoWhenItsCoroutineIsCancelled) {
  std::optional<bool> answer;
  TaskGroup group(io_.get_executor());
  Gate gate(worker_);
  group.spawn(note_answer(&worker_, &answer));
  boost::asio::post(io_, [&] {
    group.cancel();
    gate.open();
  });
  io_.run();
  EXPECT_EQ(answer, true);
  EXPECT_EQ(group.size(), 0u);
}

// A worker that counts as stuck from its first moment in a step on.
class StuckWorkerTest : public WorkerTest {
 protected:
  Worker stuck_{io_.get_executor(),
                {.calls_max = kCallsMax,
                 .lane_calls_max = kCallsMax,
                 .stall_max = std::chrono::milliseconds(0),
                 .busy = busy,
                 .stalled = stalled}};
};

TEST_F(StuckWorkerTest, AnswersThoseWhoWaitAndRefusesTheNext) {
  std::promise<void> reached;
  std::promise<void> opened;
  std::vector<std::string> codes(3);
  const auto ask_stuck = [&](std::size_t index, std::move_only_function<Result<int>()> work) {
    boost::asio::co_spawn(io_, stuck_.call(Lane(), std::move(work)),
                          [&codes, index](std::exception_ptr, Result<int> result) {
                            codes[index] = result ? "done" : result.error().code;
                          });
    io_.restart();
    io_.poll();
  };
  bool is_done = false;
  ask_stuck(0, [&]() -> Result<int> {
    reached.set_value();
    opened.get_future().wait();
    return 1;
  });
  ask_stuck(1, [&]() -> Result<int> {
    is_done = true;
    return 1;
  });
  reached.get_future().wait();
  while (!stuck_.is_stalled()) stuck_.answer_stalled_calls();
  ask_stuck(2, []() -> Result<int> { return 1; });
  EXPECT_EQ(codes, (std::vector<std::string>{"stalled", "busy", "busy"}));
  opened.set_value();
  stuck_.stop();
  EXPECT_FALSE(is_done) << "what was answered as not begun is never done";
  stuck_.answer_stalled_calls();
  EXPECT_FALSE(stuck_.is_stalled());
  io_.restart();
  io_.run();
}

}  // namespace
}  // namespace clawdforge
