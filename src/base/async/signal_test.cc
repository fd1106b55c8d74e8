#include "base/async/signal.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/async/run_to_end.h"
#include "base/async/task_group.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

class SignalTest : public ::testing::Test {
 protected:
  void poll() {
    io_.restart();
    io_.poll();
  }

  IoContext io_;
  TaskGroup group_{io_.get_executor()};
};

Task<void> note_wait(Signal* signal, Signal::Deadline deadline, std::optional<bool>* notified) {
  *notified = co_await signal->wait_until(deadline);
}

Task<void> wait_for_count(Signal* signal, const int* count, int wanted, int* woken) {
  while (*count < wanted) {
    co_await signal->wait();
    ++*woken;
  }
}

TEST_F(SignalTest, WakesAllWhoWaitAndNotInsideTheNotification) {
  Signal signal;
  std::optional<bool> first;
  std::optional<bool> second;
  group_.spawn(note_wait(&signal, Signal::Deadline::max(), &first));
  group_.spawn(note_wait(&signal, Signal::Deadline::max(), &second));
  poll();
  EXPECT_FALSE(first);
  signal.notify_all();
  EXPECT_FALSE(first) << "the waiter goes on in a later turn of the loop";
  poll();
  EXPECT_EQ(first, true);
  EXPECT_EQ(second, true);
}

TEST_F(SignalTest, ANotificationWithoutAWaiterIsNotKept) {
  Signal signal;
  signal.notify_all();
  std::optional<bool> notified;
  group_.spawn(note_wait(&signal, Signal::Deadline::max(), &notified));
  poll();
  EXPECT_FALSE(notified);
  signal.notify_all();
  poll();
  EXPECT_EQ(notified, true);
}

TEST_F(SignalTest, LosesNoWakeUpOfAWaiterThatChecksItsCondition) {
  Signal signal;
  int count = 0;
  int woken = 0;
  group_.spawn(wait_for_count(&signal, &count, 100, &woken));
  poll();
  while (count < 100) {
    ++count;
    signal.notify_all();
    signal.notify_all();
    if (count % 2 == 0) poll();
  }
  poll();
  EXPECT_EQ(group_.size(), 0u);
  EXPECT_EQ(woken, 50) << "two changes before the waiter goes on wake it once";
}

TEST_F(SignalTest, EachWaiterHasADeadlineOfItsOwn) {
  Signal signal;
  std::optional<bool> hasty;
  std::optional<bool> patient;
  group_.spawn(note_wait(&signal, Timer::clock_type::now(), &hasty));
  group_.spawn(note_wait(&signal, Timer::clock_type::now() + 1h, &patient));
  while (!hasty) io_.run_one_for(1s);
  EXPECT_EQ(hasty, false);
  EXPECT_FALSE(patient);
  signal.notify_all();
  poll();
  EXPECT_EQ(patient, true);
}

TEST_F(SignalTest, WhoIsNotifiedAtTheDeadlineWasNotified) {
  Signal signal;
  std::optional<bool> notified;
  group_.spawn(note_wait(&signal, Timer::clock_type::now() + 1ms, &notified));
  poll();
  const auto end = Timer::clock_type::now() + 2ms;
  while (Timer::clock_type::now() < end) {
  }
  signal.notify_all();
  poll();
  EXPECT_EQ(notified, true);
}

TEST_F(SignalTest, OneThatDiesWakesItsWaiters) {
  auto signal = std::make_optional<Signal>();
  std::optional<bool> notified;
  group_.spawn(note_wait(&*signal, Signal::Deadline::max(), &notified));
  poll();
  signal.reset();
  poll();
  EXPECT_EQ(notified, true);
}

Task<int> cancel_and_join_group(TaskGroup* group) {
  group->cancel();
  co_await group->join();
  co_return static_cast<int>(group->size());
}

TEST_F(SignalTest, AWaiterThatIsCancelledLeaves) {
  Signal signal;
  std::optional<bool> cancelled;
  group_.spawn(note_wait(&signal, Signal::Deadline::max(), &cancelled));
  int woken = 0;
  const int never = 0;
  group_.spawn(wait_for_count(&signal, &never, 1, &woken));
  poll();
  EXPECT_EQ(run_to_end(io_, cancel_and_join_group(&group_)), 0);
  EXPECT_EQ(cancelled, false);
  EXPECT_EQ(woken, 1) << "a loop ends too: its next wait throws the cancellation";
  signal.notify_all();
}

TEST(SignalWithoutLoop, AWaiterMayDieWithItsIoContext) {
  Signal signal;
  std::optional<bool> notified;
  {
    IoContext io;
    boost::asio::co_spawn(io, note_wait(&signal, Signal::Deadline::max(), &notified),
                          [](std::exception_ptr) {});
    io.poll();
  }
  signal.notify_all();
  EXPECT_FALSE(notified);
}

}  // namespace
}  // namespace clawdforge
