// The Spawner itself: what it refuses, and what it does in places that are short of
// descriptors, namespaces or privilege.
#include "process/tree/spawner.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "process/tree/process_fixture.h"

namespace clawdforge {
namespace {

using std::chrono::seconds;

class SpawnerTest : public ProcessTest {};

TEST_F(SpawnerTest, RefusesAZeroByte) {
  ChildPlan plan = plan_of({"echo", std::string("a\0b", 3)});
  EXPECT_EQ(spawner->spawn(plan).error().code, "zero_byte");
  plan = plan_of({"echo"});
  plan.environment["A"] = std::string("\0", 1);
  EXPECT_EQ(spawner->spawn(plan).error().code, "zero_byte");
  plan = plan_of({"echo"});
  plan.working_dir = std::string("/\0x", 3);
  EXPECT_EQ(spawner->spawn(plan).error().code, "zero_byte");
}

TEST_F(SpawnerTest, RefusesArgumentsThatTheKernelDoesNotTake) {
  const auto refused = spawner->spawn(plan_of({"echo", std::string(200'000, 'x')}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::too_large);
  EXPECT_EQ(spawner->alive(), 0U);
}

TEST_F(SpawnerTest, LeavesNothingWhereverDescriptorsRunOut) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // No number is left below 100, so that the limit counts.
  std::vector<Descriptor> fill;
  while (fill.empty() || fill.back().number() < 99) {
    fill.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(fill.back().is_open());
  }
  rlim_t refused = 0;
  bool has_worked = false;
  for (rlim_t room = 0; room < 40 && !has_worked; ++room) {
    rlimit narrow = before;
    narrow.rlim_cur = 100 + room;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &narrow), 0);
    auto child = spawner->spawn(script("exit 0"));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    if (child) {
      has_worked = true;
      EXPECT_EQ(run_to_end(io, (*child)->exit()), ExitStatus(Exited{0}));
    } else {
      ++refused;
      EXPECT_EQ(child.error().kind, Errc::unavailable);
      EXPECT_EQ(child.error().code, "no_resources");
      EXPECT_EQ(own_children(), "");
    }
  }
  EXPECT_TRUE(has_worked);
  EXPECT_EQ(refused, 12U);  // five pipes have ten ends, and there are the order and the pidfd
}

// A command that runs this program as a role under util-linux' unshare.
std::vector<std::string> under_unshare(std::vector<std::string> flags,
                                       const std::vector<std::string>& words) {
  flags.insert(flags.begin(), "unshare");
  flags.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  flags.push_back("--role");
  flags.insert(flags.end(), words.begin(), words.end());
  return flags;
}

TEST_F(SpawnerTest, DoesWithoutNamespacesOrSaysWhyItCannot) {
  if (::getuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can forbid namespaces";
  OtherProcess narrow(
      under_unshare({"--user", "--map-root-user", "sh", "-c",
                     "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"", "sh"},
                    {"refuse"}),
      true);
  EXPECT_EQ(narrow.read_line(),
            "The system allows no PID namespace for the agents (unshare: No space left on "
            "device); pid_namespace = \"auto\" does without.\n");
  EXPECT_EQ(narrow.wait_status(), 0);
}

TEST_F(SpawnerTest, NeverHitsAStrangerThatGotAProcessIdOfOurs) {
  if (::getuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can choose process ids";
  OtherProcess first(under_unshare({"--pid", "--mount", "--fork"}, {"reuse", mark}), false);
  EXPECT_EQ(first.wait_status(), 0);
}

class UserTest : public TreeTest {};

INSTANTIATE_TEST_SUITE_P(Tree, UserTest, testing::Values(PidNamespace::off, PidNamespace::on),
                         name_of_namespace);

TEST_P(UserTest, StartsChildrenAlsoWhenItIsNotDumpable) {
  OtherProcess hidden(in_role({"hide", GetParam() == PidNamespace::on ? "on" : "off", mark}),
                      false);
  EXPECT_EQ(hidden.wait_status(), 0);
}

TEST(AsUser, AllTestsOfTreesPassForAnOrdinaryUserToo) {
  if (::getuid() != 0) GTEST_SKIP() << "NOT TESTED apart: this is an ordinary user already";
  const auto& tests = *testing::UnitTest::GetInstance();
  int suites = 0;
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    suites += std::string_view(tests.GetTestSuite(i)->name()).starts_with("Tree/") ? 1 : 0;
  }
  EXPECT_EQ(suites, 3);  // a filter that finds nothing passes, too
  OtherProcess user(in_role({"be-user", "Tree/*"}), false);
  EXPECT_EQ(user.wait_status(seconds(200)), 0);
}

}  // namespace
}  // namespace clawdforge
