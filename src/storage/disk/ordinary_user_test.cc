// Modes of files mean nothing to root: what the other tests of this room show is shown once
// more by a user for whom they count.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clawdforge {
namespace {

constexpr uid_t kUnprivileged = 65'534;

[[noreturn]] void run_all_unprivileged() {
  char program[] = "/proc/self/exe";
  char others[] = "--gtest_filter=-OrdinaryUser.*";
  char* const arguments[] = {program, others, nullptr};
  if (setgroups(0, nullptr) == 0 && setgid(kUnprivileged) == 0 && setuid(kUnprivileged) == 0) {
    execv(program, arguments);
  }
  _exit(127);
}

TEST(OrdinaryUser, PassesTheOtherTestsToo) {
  if (geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) run_all_unprivileged();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace clawdforge
