#include "base/async/task_group.h"

#include <gtest/gtest.h>

#include "base/async/async_tokens.h"
#include "base/async/run_to_end.h"

namespace clawdforge {
namespace {

Task<void> wait_for_ever(IoExecutor executor, int* ended) {
  Timer timer(executor);
  timer.expires_at(Timer::time_point::max());
  co_await timer.async_wait(kAwait);
  ++*ended;
}

Task<int> cancel_and_join(TaskGroup* group) {
  group->cancel();
  co_await group->join();
  co_return static_cast<int>(group->size());
}

TEST(TaskGroup, CancelsAndJoinsItsMembers) {
  IoContext io;
  TaskGroup group(io.get_executor());
  int ended = 0;
  for (int i = 0; i < 10; ++i) group.spawn(wait_for_ever(io.get_executor(), &ended));
  io.poll();
  EXPECT_EQ(group.size(), 10u);
  EXPECT_EQ(run_to_end(io, cancel_and_join(&group)), 0);
  EXPECT_EQ(ended, 10);
}

Task<void> fail_at_once() {
  throw std::runtime_error("a defect");
  co_return;
}

TEST(TaskGroup, LetsADefectOutOfTheLoopInsteadOfSwallowingIt) {
  IoContext io;
  TaskGroup group(io.get_executor());
  group.spawn(fail_at_once());
  EXPECT_THROW(io.run(), std::runtime_error);
  EXPECT_EQ(group.size(), 0u);
}

}  // namespace
}  // namespace clawdforge
