#include "agent/failure/missing_program.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(MissingProgram, IsNamedAsShellsAndEnvNameIt) {
  for (const char* said :
       {"env: 'node': No such file or directory\n",
        "/usr/bin/env: \xe2\x80\x98node\xe2\x80\x99: No such file or directory\n",
        "env: node: No such file or directory\n", "warning: x\nsh: 1: node: not found\n",
        "/opt/agent: line 3: node: command not found\n", "sh: node: not found"}) {
    EXPECT_THAT(missing_program_hint(Exited{127}, said), StartsWith("node is not on the PATH"))
        << said;
  }
}

TEST(MissingProgram, IsSuspectedWithoutAName) {
  EXPECT_THAT(missing_program_hint(Exited{127}, ""), HasSubstr("not on the PATH"));
  EXPECT_THAT(missing_program_hint(Exited{126},
                                   "x: /opt/node: bad interpreter: No such file or "
                                   "directory\n"),
              StartsWith("A program that it needs"));
  EXPECT_THAT(missing_program_hint(Exited{127}, "env: '\x1b[2Jx y': No such file or directory"),
              testing::Not(HasSubstr("\x1b")));
}

TEST(MissingProgram, IsNotSeenInOtherEnds) {
  EXPECT_EQ(missing_program_hint(Exited{1}, "open config.json: No such file or directory\n"), "");
  EXPECT_EQ(missing_program_hint(Exited{0}, "env: 'node': No such file or directory\n"), "");
  EXPECT_EQ(missing_program_hint(Signaled{9}, "env: 'node': No such file or directory\n"), "");
  EXPECT_EQ(missing_program_hint(Exited{1}, ""), "");
}

TEST(MissingProgram, RepeatsNoLongText) {
  const std::string name(200, 'x');
  EXPECT_THAT(missing_program_hint(Exited{127}, "env: '" + name + "': No such file or directory"),
              StartsWith("A program that it needs"));
}

}  // namespace
}  // namespace clawdforge
