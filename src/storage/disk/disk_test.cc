#include "storage/disk/disk.h"

#include <gtest/gtest.h>

#include "base/async/run_to_end.h"

namespace clawdforge {
namespace {

TEST(Disk, SaysThatItIsBusyWhenItTakesNoCall) {
  IoContext io;
  Disk disk(io.get_executor());
  disk.stop();
  const auto refused = run_to_end(io, disk.call(Lane(), []() -> Result<void> { return {}; }));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::unavailable);
  EXPECT_EQ(refused.error().code, "disk_busy");
  EXPECT_EQ(refused.error().retry_after, std::chrono::seconds(1));
  EXPECT_FALSE(was_begun(refused.error()));
}

}  // namespace
}  // namespace clawdforge
