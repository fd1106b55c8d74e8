// Nothing of a tree of processes is left, however it is ended and whatever it does to stay.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "process/tree/process_fixture.h"

namespace clawdforge {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Stubborn {
  const char* name;
  const char* script;  // prints "ready" when it is as stubborn as it gets
};

constexpr Stubborn kStubborn[] = {
    {"ignores TERM", "trap '' TERM; echo ready; while :; do sleep $0; done"},
    {"forks", "sleep $0 & sleep $0 & echo ready; wait"},
    {"has a child that ignores TERM",
     "sh -c \"trap '' TERM; echo ready; while :; do sleep $0; done\" $0 & wait"},
    {"has a child in a session of its own",
     "setsid sh -c \"trap '' TERM HUP; echo ready; while :; do sleep $0; done\" $0 & wait"},
    {"has forked twice and cleared the environment",
     "(env -i /usr/bin/setsid /bin/sh -c \"trap '' TERM HUP; echo ready; while :; do "
     "/bin/sleep $0; done\" $0 &) ; sleep $0"},
    {"is three sessions deep",
     "setsid sh -c \"trap '' TERM; setsid sh -c \\\"trap '' TERM; setsid sh -c "
     "'trap : TERM; echo ready; while :; do sleep $0; done' $0 & wait; sleep $0\\\" & wait; sleep "
     "$0\" & wait"},
    {"stops itself", "(echo ready; kill -STOP $$); sleep $0"},
    {"forks and leaves all the time",
     "trap '' TERM; again() { again & }; again; echo ready; sleep $0"},
};

class TreeEndTest : public TreeTest {};

INSTANTIATE_TEST_SUITE_P(Tree, TreeEndTest, testing::Values(PidNamespace::off, PidNamespace::on),
                         name_of_namespace);

TEST_P(TreeEndTest, LeavesNothingWhenWeLetGo) {
  for (const Stubborn& stubborn : kStubborn) {
    SCOPED_TRACE(stubborn.name);
    const auto child = start_ready(stubborn.script);
    EXPECT_FALSE(processes_with(mark).empty());
    child->let_go();
    run_to_end(io, wait_until_gone(child.get()));
    EXPECT_TRUE(processes_with(mark).empty());
  }
}

TEST_P(TreeEndTest, LeavesNothingWhenTheProgramEndsByItself) {
  for (const Stubborn& stubborn : kStubborn) {
    SCOPED_TRACE(stubborn.name);
    // The program starts the stubborn one beside it and waits for nothing but us.
    const auto child = start(
        plan_of({"sh", "-c", "sh -c \"$1\" \"$0\" & read line; exit 6", mark, stubborn.script}));
    ASSERT_EQ(run_to_end(io, read_once(child.get())), "ready\n");
    EXPECT_FALSE(processes_with(mark).empty());
    child->close_input();
    EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{6}));
    run_to_end(io, wait_until_gone(child.get()));
    EXPECT_TRUE(processes_with(mark).empty());
  }
}

// A process that renews a login must not be killed before it has saved it. It ignores TERM, as one
// that is not ready for it does; without a grace, only the mark keeps the KILL away.
TEST_P(TreeEndTest, WaitsWhileTheTreeIsBusy) {
  make_spawner(milliseconds(0));
  const std::string lock = testing::TempDir() + "busy-" + mark;
  ASSERT_EQ(::mkdir(lock.c_str(), 0700), 0);
  ChildPlan plan = script(
      "trap '' TERM; echo ready; until test -e $1.go; do sleep 0.01; done; "
      "echo saved > $1.saved; rmdir $1; while :; do sleep 1; done");
  plan.argv.push_back(lock);
  plan.busy = {.path = lock, .wait_max = seconds(60)};
  const auto child = start(plan);
  ASSERT_EQ(run_to_end(io, read_once(child.get())), "ready\n");
  child->let_go();
  std::ofstream(lock + ".go").put('x');
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_TRUE(std::ifstream(lock + ".saved").good());
  EXPECT_TRUE(processes_with(mark).empty());
  std::remove((lock + ".go").c_str());
  std::remove((lock + ".saved").c_str());
}

TEST_P(TreeEndTest, DoesNotWaitForEverForWhatIsBusy) {
  make_spawner(milliseconds(0));
  const std::string lock = testing::TempDir() + "busy-" + mark;
  ASSERT_EQ(::mkdir(lock.c_str(), 0700), 0);
  ChildPlan plan = script("trap '' TERM; echo ready; while :; do sleep 1; done");
  plan.busy = {.path = lock, .wait_max = milliseconds(50)};
  const auto child = start(plan);
  ASSERT_EQ(run_to_end(io, read_once(child.get())), "ready\n");
  child->let_go();
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_TRUE(processes_with(mark).empty());
  ::rmdir(lock.c_str());
}

struct Owned {
  std::string what;
  std::string mark = new_mark();
  bool is_group_killed = false;
  std::unique_ptr<OtherProcess> owner;
};

TEST_P(TreeEndTest, LeavesNothingWhenTheOwnerIsKilled) {
  const std::string wanted = GetParam() == PidNamespace::on ? "on" : "off";
  std::vector<Owned> all;
  for (const Stubborn& stubborn : kStubborn) {
    for (const bool is_group_killed : {false, true}) {
      Owned& one = all.emplace_back();
      one.what = fmt::format("{}{}", stubborn.name, is_group_killed ? ", group killed" : "");
      one.is_group_killed = is_group_killed;
      one.owner =
          std::make_unique<OtherProcess>(in_role({"own", wanted, stubborn.script, one.mark}), true);
    }
  }
  for (Owned& one : all) {
    SCOPED_TRACE(one.what);
    ASSERT_EQ(one.owner->read_line(), "ready\n");
    ASSERT_GT(processes_with(one.mark).size(), 1U);  // the owner itself has the mark too
    ::kill(one.is_group_killed ? -one.owner->pid() : one.owner->pid(), SIGKILL);
    EXPECT_EQ(one.owner->wait_status(), SIGKILL);
  }
  for (const Owned& one : all) {
    EXPECT_TRUE(eventually([&] { return processes_with(one.mark).empty(); })) << one.what;
  }
}

TEST_P(TreeEndTest, LeavesNothingWhenItsLauncherIsKilled) {
  const std::string wanted = GetParam() == PidNamespace::on ? "on" : "off";
  for (const Stubborn& stubborn : kStubborn) {
    SCOPED_TRACE(stubborn.name);
    OtherProcess owner(in_role({"adopt", wanted, stubborn.script, mark}), false);
    EXPECT_EQ(owner.wait_status(), 0);
    EXPECT_TRUE(processes_with(mark).empty());
  }
}

TEST_P(TreeEndTest, TakesNoLongerThanThePoliteNeed) {
  make_spawner(seconds(60));
  const auto begin = std::chrono::steady_clock::now();
  const auto child = start_ready("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  child->let_go();
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{7}));
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

TEST_P(TreeEndTest, AsksAlsoWhoBecameAnOrphanMeanwhile) {
  make_spawner(seconds(60));
  const auto begin = std::chrono::steady_clock::now();
  // Only the innermost says something; it gets no TERM before the others are dead.
  const auto child = start_ready(
      "setsid sh -c \"setsid sh -c 'trap \\\"exit 0\\\" TERM; echo ready; while :; do sleep "
      "0.01; done' $0 & wait\" & wait");
  child->let_go();
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

TEST_P(TreeEndTest, SendsTermOnlyOnce) {
  make_spawner(milliseconds(400));
  const auto child =
      start_ready("trap 'echo asked >&2' TERM; echo ready; while :; do sleep 0.01; done");
  child->let_go();
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Signaled{SIGKILL}));
  // The shell has its own words for what became of its sleep.
  const std::string_view tail = child->error_tail();
  EXPECT_NE(tail.find("asked"), tail.npos);
  EXPECT_EQ(tail.find("asked"), tail.rfind("asked"));
}

TEST_P(TreeEndTest, EndsAReaderWhosePipeIsHeldByADescendant) {
  const auto child =
      start(script("setsid sh -c \"trap '' TERM; echo held; exec sleep $0\" & read line; exit 3"));
  EXPECT_EQ(run_to_end(io, read_once(child.get())), "held\n");
  child->close_input();
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{3}));
  EXPECT_EQ(run_to_end(io, read_all(child.get())), "");
  run_to_end(io, wait_until_gone(child.get()));
}

TEST_P(TreeEndTest, MayBeForgottenAtEveryStage) {
  const std::string stubborn = "trap '' TERM; echo ready; sleep $0; sleep $0";
  start(script(stubborn));  // before it has begun
  start_ready(stubborn);
  {
    const auto child = start(script("exit 0"));
    run_to_end(io, child->exit());
  }
  {
    const auto child = start(script("sleep $0 & exit 0"));
    run_to_end(io, child->exit());
  }
  {
    const auto child = start(script("exit 0"));
    run_to_end(io, wait_until_gone(child.get()));
  }
  start(plan_of({"no-such-program"}));
  int ended = 0;
  {
    const auto child = start_ready(stubborn);
    const auto count = [&](std::exception_ptr, auto) { ++ended; };
    boost::asio::co_spawn(io, child->read(10), count);
    boost::asio::co_spawn(io, child->write(std::string(1'000'000, 'x')), count);
    boost::asio::co_spawn(io, child->exit(), count);
    io.restart();
    io.poll();
    EXPECT_EQ(ended, 0);
  }
  EXPECT_TRUE(eventually([&] { return ended == 3; }));
  EXPECT_TRUE(eventually([&] { return spawner->alive() == 0; }));
}

TEST_P(TreeEndTest, NeverHitsAStranger) {
  // In our own process group, as a careless signal to the group of ours would find it.
  OtherProcess stranger({"sleep", new_mark()}, false);
  for (const Stubborn& stubborn : kStubborn) start_ready(stubborn.script)->let_go();
  EXPECT_TRUE(eventually([&] { return spawner->alive() == 0; }));
  EXPECT_FALSE(stranger.wait_status(seconds(0)));
  ::kill(stranger.pid(), SIGKILL);
  EXPECT_EQ(stranger.wait_status(), SIGKILL);
}

TEST_P(TreeEndTest, RunsFiftyAtOnce) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 50; ++i) {
    children.push_back(start(script(fmt::format("read line; echo $line; exit {}", i))));
  }
  EXPECT_EQ(spawner->alive(), 50U);
  for (const auto& child : children) {
    EXPECT_TRUE(run_to_end(io, write_and_close(child.get(), fmt::format("{}\n", child->id().pid))));
  }
  for (int i = 0; i < 50; ++i) {
    Child* child = children[static_cast<std::size_t>(i)].get();
    EXPECT_EQ(run_to_end(io, read_all(child)), fmt::format("{}\n", child->id().pid));
    EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{i}));
  }
}

TEST_P(TreeEndTest, StopEndsAllAndWaitsForThem) {
  std::vector<std::unique_ptr<Child>> children;
  for (const Stubborn& stubborn : kStubborn) children.push_back(start_ready(stubborn.script));
  run_to_end(io, stop_spawner(spawner.get()));
  EXPECT_EQ(spawner->alive(), 0U);
  EXPECT_TRUE(processes_with(mark).empty());
  EXPECT_EQ(own_children(), "");
  const auto refused = spawner->spawn(plan_of({"true"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::unavailable);
}

TEST_P(TreeEndTest, LeavesNothingAfterTwoHundredMixedOnes) {
  const char* const kinds[] = {
      "exit 0",
      "echo ready; exec sleep $0",
      "trap '' TERM; echo ready; exec sleep $0",
      "head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2",
      "kill -9 $$",
      "setsid sleep $0 & exit 1",
      "cat > /dev/null",
      "exec 0<&- 1>&- 2>&-; exec sleep $0",
  };
  std::vector<std::unique_ptr<Child>> children;
  unsigned random = 12345;
  const auto pick = [&](unsigned below) {
    random = random * 1664525 + 1013904223;
    return (random >> 16) % below;
  };
  for (int i = 0; i < 200; ++i) {
    children.push_back(start(script(kinds[pick(std::size(kinds))])));
    if (pick(4) == 0) children.back()->close_input();
    if (pick(2) == 0) children.erase(children.begin() + pick(children.size()));
    io.restart();
    io.poll();
  }
  children.clear();
  EXPECT_TRUE(eventually([&] { return spawner->alive() == 0; }));
}  // the fixture counts processes, zombies and descriptors

}  // namespace
}  // namespace clawdforge
