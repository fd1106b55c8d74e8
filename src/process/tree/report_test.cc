#include "process/tree/report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>

namespace clawdforge {
namespace {

TEST(Report, TellsTheKindsOfEndApart) {
  EXPECT_EQ(parse_report("exited 0"), (Report{Exited{0}, {}}));
  EXPECT_EQ(parse_report("exited 255"), (Report{Exited{255}, {}}));
  EXPECT_EQ(parse_report("signaled 9"), (Report{Signaled{9}, {}}));
  EXPECT_EQ(parse_report("over-memory 0"), (Report{OverLimit{OverLimit::What::memory}, {}}));
  EXPECT_EQ(parse_report("over-processes 0"), (Report{OverLimit{OverLimit::What::processes}, {}}));
  EXPECT_EQ(parse_report("not-started 2 exec"), (Report{NotStarted{ENOENT}, "exec"}));
}

TEST(Report, RefusesWhatIsNoReport) {
  for (const char* line :
       {"", "exited", "exited ", "exited x", "exited 1 2", "exited -1", "exited 99999999999",
        "signaled 9x", "not-started 2", "not-started exec", "EXITED 0", " exited 0", "left 0"}) {
    EXPECT_FALSE(parse_report(line)) << line;
  }
}

RC_GTEST_PROP(Report, GivesBackEveryNumber, (unsigned short number)) {
  const int code = number;
  RC_ASSERT(parse_report("exited " + std::to_string(code)) == (Report{Exited{code}, {}}));
  RC_ASSERT(parse_report("signaled " + std::to_string(code)) == (Report{Signaled{code}, {}}));
}

RC_GTEST_PROP(Report, TakesAnyBytesWithoutHarm, (const std::string& line)) {
  const auto report = parse_report(line);
  RC_ASSERT(!report || line.starts_with("exited ") || line.starts_with("signaled ") ||
            line.starts_with("not-started ") || line.starts_with("over-"));
}

}  // namespace
}  // namespace clawdforge
