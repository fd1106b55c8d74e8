#include "base/async/compute_worker.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/async/run_to_end.h"

namespace clawdforge {
namespace {

struct Done {
  std::size_t bytes;
  std::thread::id thread;
};

Result<Done> work_on(const std::string& text) {
  return Done{text.size(), std::this_thread::get_id()};
}

TEST(ComputeWorker, DoesLittleWorkHereAndMuchOnAnotherThread) {
  IoContext io;
  ComputeWorker worker(io.get_executor());
  const auto here = std::this_thread::get_id();
  const auto little = run_to_end(
      io, worker.run(Lane(AppName("app")), std::string(kComputeBytesMin - 1, 'a'), work_on));
  EXPECT_EQ(little->thread, here);
  const auto much =
      run_to_end(io, worker.run(Lane(AppName("app")), std::string(kComputeBytesMin, 'a'), work_on));
  EXPECT_NE(much->thread, here);
  EXPECT_EQ(much->bytes, kComputeBytesMin);
}

}  // namespace
}  // namespace clawdforge
