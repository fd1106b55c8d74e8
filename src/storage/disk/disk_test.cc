#include "storage/disk/disk.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/task_group.h"
#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class DiskTest : public WorkspaceTest {
 protected:
  // Keeps the disk's thread busy until open() is called.
  class Gate {
   public:
    explicit Gate(Disk& disk) {
      disk.post([opened = opened_.get_future()]() mutable { opened.wait(); });
    }
    void open() { opened_.set_value(); }

   private:
    std::promise<void> opened_;
  };

  void ask(std::move_only_function<Result<void>()> work,
           std::move_only_function<void(Result<void>)> answer) {
    boost::asio::co_spawn(
        io_, disk_.call(std::move(work)),
        [answer = std::move(answer)](std::exception_ptr thrown, Result<void> result) mutable {
          ASSERT_FALSE(thrown);
          answer(std::move(result));
        });
  }
};

TEST_F(DiskTest, WorksOnAnotherThreadAndAnswersOnThisOne) {
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

TEST_F(DiskTest, DoesAllInOrderOfArrival) {
  std::vector<int> done;
  for (int i = 0; i < 100; i += 2) {
    ask(
        [&done, i]() -> Result<void> {
          done.push_back(i);
          return {};
        },
        [](Result<void> result) { EXPECT_TRUE(result); });
    boost::asio::post(io_, [&, i] { disk_.post([&done, i] { done.push_back(i + 1); }); });
  }
  io_.run();
  disk_.stop();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST_F(DiskTest, AnErrorAndAnExceptionAreAnswers) {
  auto failed = await(disk_.call(
      []() -> Result<void> { return fail(Errc::not_found, "no_such_thing", "There is none."); }));
  EXPECT_EQ(failed.error().code, "no_such_thing");
  auto thrown = await(disk_.call([]() -> Result<void> { throw std::runtime_error("broken"); }));
  EXPECT_EQ(thrown.error().kind, Errc::internal);
  EXPECT_EQ(thrown.error().detail, "broken");
}

TEST_F(DiskTest, RefusesCallsWhenTooMuchWaitsAndLosesNoCleaningUp) {
  Gate gate(disk_);
  std::size_t done = 0;
  std::size_t refused = 0;
  std::size_t cleaned = 0;
  for (std::size_t i = 0; i < kDiskJobsMax + 10; ++i) {
    ask([]() -> Result<void> { return {}; },
        [&](Result<void> result) {
          result ? ++done : ++refused;
          if (result) return;
          EXPECT_EQ(result.error().kind, Errc::unavailable);
          EXPECT_EQ(result.error().code, "disk_busy");
          EXPECT_EQ(result.error().retry_after, std::chrono::seconds(1));
        });
  }
  while (refused < 10) io_.run_one();
  for (int i = 0; i < 100; ++i) disk_.post([&cleaned] { ++cleaned; });
  gate.open();
  io_.run();
  EXPECT_EQ(done, kDiskJobsMax);
  EXPECT_EQ(refused, 10u);
  EXPECT_TRUE(await(disk_.call([]() -> Result<void> { return {}; }))) << "there is room again";
  disk_.stop();
  EXPECT_EQ(cleaned, 100u);
}

TEST_F(DiskTest, StopFinishesWhatIsQueuedAndRefusesTheRest) {
  bool is_answered = false;
  int cleaned = 0;
  ask([]() -> Result<void> { return {}; },
      [&](Result<void> result) { is_answered = result.has_value(); });
  io_.poll();  // the call is made
  disk_.post([&] { ++cleaned; });
  disk_.stop();
  EXPECT_EQ(cleaned, 1);
  disk_.post([&] { ++cleaned; });
  EXPECT_EQ(await(disk_.call([]() -> Result<void> { return {}; })).error().code, "disk_busy");
  io_.restart();
  io_.run();
  EXPECT_TRUE(is_answered);
  EXPECT_EQ(cleaned, 1);
}

TEST_F(DiskTest, LongWorkInStepsLetsOthersGoInBetween) {
  std::vector<std::string> done;
  Gate gate(disk_);
  disk_.post_in_steps([&, left = 3]() mutable {
    done.push_back("step");
    return --left > 0;
  });
  disk_.post([&] { done.push_back("other"); });
  gate.open();
  // Behind all of it, whatever the thread has taken together.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(await(disk_.call([]() -> Result<void> { return {}; })));
  disk_.stop();
  EXPECT_EQ(done, (std::vector<std::string>{"step", "other", "step", "step"}));
}

TEST_F(DiskTest, StopDoesStepsToTheirEnd) {
  int steps = 0;
  Gate gate(disk_);
  disk_.post_in_steps([&] { return ++steps < 50; });
  std::thread stopping([this] { disk_.stop(); });
  gate.open();
  stopping.join();
  EXPECT_EQ(steps, 50);
}

Task<void> note_answer(Disk* disk, std::optional<bool>* answer) {
  const auto called = co_await disk->call([]() -> Result<void> { return {}; });
  *answer = called.has_value();
}

TEST_F(DiskTest, ACallIsAnsweredAlsoWhenItsCoroutineIsCancelled) {
  std::optional<bool> answer;
  TaskGroup group(io_.get_executor());
  Gate gate(disk_);
  group.spawn(note_answer(&disk_, &answer));
  boost::asio::post(io_, [&] {
    group.cancel();
    gate.open();
  });
  io_.run();
  EXPECT_EQ(answer, true);
  EXPECT_EQ(group.size(), 0u);
}

}  // namespace
}  // namespace clawdforge
