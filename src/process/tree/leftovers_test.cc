// Processes that an earlier life has left are ended, and never any others.
#include "process/tree/leftovers.h"

#include "process/tree/proc_entry.h"
#include "process/tree/process_fixture.h"

namespace clawdforge {
namespace {

using std::chrono::milliseconds;

class LeftoversTest : public TreeTest {
 protected:
  static Leftover mark_of(pid_t pid) {
    return {{pid, proc_entry(pid).value().start_time}, read_boot_id()};
  }

  LeftoversReport end(std::vector<Leftover> leftovers) {
    return run_to_end(io, end_leftovers(io.get_executor(), std::move(leftovers), milliseconds(100)),
                      kPatience);
  }

  static bool is_alive(pid_t pid) {
    const auto entry = proc_entry(pid);
    return entry && entry->state != 'Z';
  }
};

INSTANTIATE_TEST_SUITE_P(Leftovers, LeftoversTest,
                         testing::Values(PidNamespace::off, PidNamespace::on), name_of_namespace);

TEST_P(LeftoversTest, AStrangerWithTheSamePidIsLeftAlone) {
  OtherProcess stranger({"sleep", mark}, false);
  const Leftover right = mark_of(stranger.pid());
  std::vector<Leftover> wrong(5, right);
  wrong[0].id.start_time += 1;
  wrong[1].id.start_time = 0;
  wrong[2].boot_id = "5f0c2a0e-0000-4000-8000-000000000000";
  wrong[3].boot_id = "";
  wrong[4] = mark_of(::getpid());  // nor do we end ourselves
  for (const std::int64_t odd : {0L, 1L, -1L, -static_cast<long>(right.id.pid), 1L << 40}) {
    wrong.push_back({{odd, right.id.start_time}, right.boot_id});
  }
  const LeftoversReport report = end(wrong);
  EXPECT_EQ(report.ended, 0);
  EXPECT_TRUE(report.stuck.empty());
  EXPECT_TRUE(is_alive(stranger.pid()));
}

TEST_P(LeftoversTest, OneThatMatchesIsAskedToEnd) {
  OtherProcess left({"sleep", mark}, false);
  EXPECT_EQ(end({mark_of(left.pid())}).ended, 1);
  const auto status = left.wait_status();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM) << *status;
}

TEST_P(LeftoversTest, WhatIgnoresTermIsKilledWithItsChildren) {
  OtherProcess left({"sh", "-c",
                     "trap '' TERM; setsid sleep $0 & sleep $0 & sh -c 'sleep $0; :' $0 & "
                     "echo ready; wait; :",
                     mark},
                    true);
  ASSERT_EQ(left.read_line(), "ready\n");
  ASSERT_TRUE(eventually([&] { return processes_with(mark).size() >= 5; }));
  EXPECT_EQ(end({mark_of(left.pid())}).ended, 1);
  EXPECT_TRUE(left.wait_status());
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_P(LeftoversTest, ATreeThatEndsByItselfIsWaitedFor) {
  if (!spawner) GTEST_SKIP();
  const auto child = start_ready("trap '' TERM; echo ready; while :; do sleep $0; done");
  const Leftover leftover = mark_of(static_cast<pid_t>(child->id().pid));
  child->let_go();
  EXPECT_EQ(end({leftover, leftover}).ended, 2) << "one that is named twice does no harm";
  EXPECT_TRUE(processes_with(mark).empty());
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_EQ(end({leftover}).ended, 0) << "it was there only once";
}

TEST_P(LeftoversTest, AStoppedLauncherIsWokenAndDoesItsWork) {
  if (!spawner) GTEST_SKIP();
  const auto child = start_ready("setsid sleep $0 & sleep $0 & echo ready; wait");
  const auto launcher = static_cast<pid_t>(child->id().pid);
  const Leftover leftover = mark_of(launcher);
  ASSERT_EQ(::kill(launcher, SIGSTOP), 0);
  child->let_go();
  EXPECT_EQ(end({leftover}).ended, 1);
  EXPECT_TRUE(processes_with(mark).empty());
  run_to_end(io, wait_until_gone(child.get()));
}

// Its lifeline is whole: a launcher that does not hear that it should end.
TEST_P(LeftoversTest, ALauncherThatHangsIsKilledWithAllThatIsBelowIt) {
  if (!spawner) GTEST_SKIP();
  const auto child = start_ready(
      "(env -i /usr/bin/setsid /bin/sh -c \"trap '' TERM HUP; echo ready; while :; do /bin/sleep "
      "$0; done\" $0 &); sleep $0");
  EXPECT_EQ(end({mark_of(static_cast<pid_t>(child->id().pid))}).ended, 1);
  EXPECT_TRUE(processes_with(mark).empty());
  run_to_end(io, wait_until_gone(child.get()));
}

TEST_P(LeftoversTest, AProcessTableEntryIsReadWhateverItsNameIs) {
  const auto own = proc_entry(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->parent, ::getppid());
  EXPECT_EQ(own->state, 'R');
  OtherProcess odd({"sh", "-c", "printf ') R 1 1' > /proc/$$/comm; echo ready; read line"}, true);
  ASSERT_EQ(odd.read_line(), "ready\n");
  const auto entry = proc_entry(odd.pid());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, ::getpid());
  EXPECT_GE(entry->start_time, own->start_time);
  EXPECT_FALSE(proc_entry(0));
}

}  // namespace
}  // namespace clawdforge
