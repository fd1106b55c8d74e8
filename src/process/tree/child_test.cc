// One child: how it is started, what passes through its pipes, and how its end is told.
#include "process/tree/child.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/async/task_group.h"
#include "process/tree/process_fixture.h"

namespace clawdforge {
namespace {

using std::chrono::milliseconds;

class ChildTest : public TreeTest {};

INSTANTIATE_TEST_SUITE_P(Tree, ChildTest, testing::Values(PidNamespace::off, PidNamespace::on),
                         name_of_namespace);

TEST_P(ChildTest, TellsTheExitCode) {
  for (const int code : {0, 1, 3, 126, 127, 128, 137, 255}) {
    EXPECT_EQ(run(script(fmt::format("exit {}", code))).status, ExitStatus(Exited{code}));
  }
}

TEST_P(ChildTest, TellsTheSignalThatKilledIt) {
  const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                         SIGFPE,  SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,
                         SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS,  SIGRTMIN};
  for (const int number : signals) {
    const auto outcome = run(script(fmt::format("ulimit -c 0; kill -{} $$", number)));
    EXPECT_EQ(outcome.status, ExitStatus(Signaled{number}));
  }
}

TEST_P(ChildTest, TellsThatTheProgramIsNotThere) {
  EXPECT_EQ(run(plan_of({"no-such-program-" + mark})).status, ExitStatus(NotStarted{ENOENT}));
  EXPECT_EQ(run(plan_of({"/no/such/program"})).status, ExitStatus(NotStarted{ENOENT}));
}

TEST_P(ChildTest, TellsThatTheProgramIsNotExecutable) {
  EXPECT_EQ(run(plan_of({"/etc/passwd"})).status, ExitStatus(NotStarted{EACCES}));
  EXPECT_EQ(run(plan_of({"/etc"})).status, ExitStatus(NotStarted{EACCES}));
}

TEST_P(ChildTest, TellsThatTheWorkingDirectoryIsUnusable) {
  std::vector<std::string> steps;
  spawner->on_failed_step([&](std::string_view step) { steps.emplace_back(step); });
  EXPECT_EQ(run(plan_of({"/no/such/program"})).status, ExitStatus(NotStarted{ENOENT}));
  EXPECT_TRUE(steps.empty()) << "the last step is not one of the launcher's own";
  ChildPlan plan = plan_of({"true"});
  plan.working_dir = "/no/such/place";
  EXPECT_EQ(run(plan).status, ExitStatus(NotStarted{ENOENT}));
  EXPECT_EQ(steps.size(), 1U);
  plan.working_dir = "/etc/passwd";
  EXPECT_EQ(run(plan).status, ExitStatus(NotStarted{ENOTDIR}));
}

TEST_P(ChildTest, RunsInItsWorkingDirectory) {
  ChildPlan plan = plan_of({"pwd"});
  plan.working_dir = "/usr/share";
  EXPECT_EQ(run(plan).output, "/usr/share\n");
}

TEST_P(ChildTest, GetsItsArgumentsAsTheyAre) {
  const std::vector<std::string> given = {"",           "a b",  "*",  "$HOME", "\"'\\",
                                          "line\nline", "\xff", "--", "-x"};
  ChildPlan plan = plan_of({"sh", "-c", "for a; do printf '<%s>' \"$a\"; done", "name"});
  std::string expected;
  for (const std::string& argument : given) {
    plan.argv.push_back(argument);
    expected += "<" + argument + ">";
  }
  EXPECT_EQ(run(plan).output, expected);
}

TEST_P(ChildTest, GetsExactlyItsEnvironment) {
  ::setenv("CLAWDFORGE_TEST_LEAK", "ours", 1);
  ChildPlan plan = plan_of({"/usr/bin/env"});
  plan.environment = {{"A", "1"}, {"EMPTY", ""}, {"TEXT", "x = y"}};
  EXPECT_EQ(run(plan).output, "A=1\nEMPTY=\nTEXT=x = y\n");
  plan.environment = {};
  EXPECT_EQ(run(plan).output, "");
  ::unsetenv("CLAWDFORGE_TEST_LEAK");
}

TEST_P(ChildTest, IsLookedUpInItsOwnPath) {
  ChildPlan plan = plan_of({"env"});
  plan.environment = {{"PATH", "/no/such/place"}};
  EXPECT_EQ(run(plan).status, ExitStatus(NotStarted{ENOENT}));
  plan.environment = {{"PATH", "/no/such/place:/usr/bin"}};
  EXPECT_EQ(run(plan).status, ExitStatus(Exited{0}));
}

TEST_P(ChildTest, InheritsNoDescriptorButItsPipes) {
  // Low and high numbers of ours that a careless program would leave open for children.
  const Descriptor low(::open("/dev/null", O_RDONLY));
  const Descriptor high(::fcntl(low.number(), F_DUPFD, 200));
  const auto other = start(script("read line"));
  const auto outcome = run(plan_of({"ls", "/proc/self/fd"}));
  EXPECT_EQ(outcome.output, "0\n1\n2\n3\n");  // 3 is the directory that ls reads
}

TEST_P(ChildTest, HasDefaultSignals) {
  const std::string status = run(plan_of({"cat", "/proc/self/status"})).output;
  for (const char* kind : {"SigBlk", "SigIgn", "SigCgt"}) {
    EXPECT_TRUE(status.contains(fmt::format("{}:\t0000000000000000\n", kind))) << status;
  }
}

TEST_P(ChildTest, LeadsASessionOfItsOwn) {
  const auto outcome =
      run(script("read -r pid name state parent group session rest "
                 "< /proc/$$/stat; test $$ = $group && test $$ = $session"));
  EXPECT_EQ(outcome.status, ExitStatus(Exited{0}));
}

TEST_P(ChildTest, GetsTheSoftLimitOnDescriptorsBackAndKeepsTheHardOne) {
  rlimit ours{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &ours), 0);
  EXPECT_EQ(run(script("ulimit -Sn")).output, fmt::format("{}\n", ours.rlim_cur));
  make_spawner(milliseconds(100), 77);
  EXPECT_EQ(run(script("ulimit -Sn; ulimit -Hn")).output, fmt::format("77\n{}\n", ours.rlim_max));
}

TEST_P(ChildTest, PassesAMegabyteThroughBothPipes) {
  std::string bytes(1 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  const auto child = start(plan_of({"cat"}));
  std::optional<bool> is_written;
  boost::asio::co_spawn(
      io, write_and_close(child.get(), bytes),
      [&](std::exception_ptr, const Result<void>& written) { is_written = written.has_value(); });
  EXPECT_TRUE(run_to_end(io, read_all(child.get())) == bytes);
  EXPECT_EQ(is_written, true);
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{0}));
}

TEST_P(ChildTest, ReadsNoMoreAtOnceThanAskedFor) {
  const auto child = start(script("printf abcdef"));
  run_to_end(io, child->exit());
  const auto first = run_to_end(io, child->read(4));
  const auto second = run_to_end(io, child->read(4));
  const auto third = run_to_end(io, child->read(4));
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first + "|" + *second + "|" + *third, "abcd|ef|");
}

TEST_P(ChildTest, IsNotStoppedByAFloodOfComplaintsThatAreNotRead) {
  const auto child =
      start(script("head -c 1000000 /dev/zero | tr '\\0' e >&2; printf last >&2;"
                   "head -c 300000 /dev/zero | tr '\\0' o; exit 5"));
  // Its output is not read meanwhile.
  EXPECT_TRUE(eventually([&] { return child->error_tail().ends_with("last"); }));
  EXPECT_EQ(child->error_tail(), std::string(8192 - 4, 'e') + "last");
  EXPECT_EQ(run_to_end(io, read_all(child.get())), std::string(300'000, 'o'));
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{5}));
}

TEST_P(ChildTest, HasSaidItsLastWordsWhenItsEndIsKnown) {
  for (int i = 0; i < 20; ++i) {
    const auto child = start(script("printf 'the reason' >&2; exit 1"));
    EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{1}));
    EXPECT_EQ(child->error_tail(), "the reason");
  }
}

TEST_P(ChildTest, MayCloseItsOutputEarlyAndGoOn) {
  const auto child = start(script("echo ready; exec 1>&- 2>&-; read line; exit 4"));
  EXPECT_EQ(run_to_end(io, read_all(child.get())), "ready\n");
  EXPECT_EQ(spawner->alive(), 1U);
  EXPECT_TRUE(run_to_end(io, write_and_close(child.get(), "\n")));
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{4}));
}

TEST_P(ChildTest, TellsAWriterThatItDoesNotRead) {
  const auto child = start_ready("exec 0<&-; echo ready; exec sleep $0");
  const auto written = run_to_end(io, child->write(std::string(200'000, 'x')));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, Errc::gone);
  EXPECT_EQ(written.error().code, "not_reading");
  EXPECT_FALSE(run_to_end(io, child->write("x")));
}

TEST_P(ChildTest, ToldToLetGoEndsAWaitingWriterAndReader) {
  const auto child = start_ready("echo ready; exec sleep $0");
  std::optional<bool> is_written;
  boost::asio::co_spawn(
      io, child->write(std::string(1'000'000, 'x')),
      [&](std::exception_ptr, const Result<void>& written) { is_written = written.has_value(); });
  std::optional<std::string> was_read;
  boost::asio::co_spawn(io, read_once(child.get()), [&](std::exception_ptr, std::string bytes) {
    was_read = std::move(bytes);
  });
  io.restart();
  io.poll();
  ASSERT_FALSE(is_written || was_read);
  child->let_go();
  child->let_go();
  EXPECT_TRUE(eventually([&] { return is_written && was_read; }));
  EXPECT_EQ(is_written, false);
  EXPECT_EQ(was_read, "");
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Signaled{SIGTERM}));
}

TEST_P(ChildTest, TellsItsEndToEverybodyWhoAsksHoweverLate) {
  const auto child = start(script("read line; exit 9"));
  int told = 0;
  for (int i = 0; i < 3; ++i) {
    boost::asio::co_spawn(io, child->exit(), [&](std::exception_ptr, const ExitStatus& status) {
      if (status == ExitStatus(Exited{9})) ++told;
    });
  }
  child->close_input();
  EXPECT_TRUE(eventually([&] { return told == 3; }));
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{9}));
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Exited{9}));
  EXPECT_TRUE(run_to_end(io, wait_until_gone(child.get())));
}

TEST_P(ChildTest, KnowsWhetherItsInputIsReadBeforeItsEndIsTold) {
  const auto reads = start(script("echo ready; read line"));
  EXPECT_EQ(run_to_end(io, read_once(reads.get())), "ready\n");
  EXPECT_TRUE(reads->has_input_reader());
  const auto does_not = start(script("exec <&-; echo ready; exec sleep 60"));
  EXPECT_EQ(run_to_end(io, read_once(does_not.get())), "ready\n");
  EXPECT_FALSE(does_not->has_input_reader());
}

TEST_P(ChildTest, KeepsWhatWasNotReadWhenItIsGone) {
  const auto child = start(script("printf 'to be read later'"));
  run_to_end(io, wait_until_gone(child.get()));
  EXPECT_EQ(run_to_end(io, read_all(child.get())), "to be read later");
}

TEST_P(ChildTest, HasAnIdThatTellsItFromItsSuccessors) {
  const auto first = start(script("read line"));
  const auto second = start(script("read line"));
  const ProcessId id = first->id();
  EXPECT_GT(id.pid, 1);
  EXPECT_GT(id.start_time, 0);
  EXPECT_NE(id.pid, second->id().pid);
  EXPECT_GE(second->id().start_time, id.start_time);
  EXPECT_TRUE(
      eventually([&] { return text_of(fmt::format("/proc/{}/comm", id.pid)) == "cf-launcher\n"; }));
  first->let_go();
  run_to_end(io, wait_until_gone(first.get()));
  EXPECT_EQ(first->id().pid, id.pid);
  EXPECT_EQ(first->id().start_time, id.start_time);
}

TEST_P(ChildTest, WhoseLauncherWasKilledEndsToo) {
  const auto child = start(script("trap '' TERM; sleep $0 & echo $!; wait; exit 3"));
  const pid_t sleep = std::stoi(run_to_end(io, read_once(child.get())));
  ASSERT_FALSE(processes_with(mark).empty());
  ::kill(static_cast<pid_t>(child->id().pid), SIGKILL);
  EXPECT_EQ(run_to_end(io, child->exit()), ExitStatus(Unknown{}));
  run_to_end(io, wait_until_gone(child.get()));
  if (GetParam() == PidNamespace::off) {
    // Without a namespace that holds for the program alone; its sleep goes on as an orphan.
    EXPECT_TRUE(eventually([&] { return processes_with(mark) == std::vector{sleep}; }));
    ::kill(sleep, SIGKILL);
  }
  EXPECT_TRUE(eventually([&] { return processes_with(mark).empty(); }));
}

template <class T>
Task<void> await_it(Task<T> task) {
  co_await std::move(task);
}

TEST_P(ChildTest, DoesNotKeepAWaiterThatIsCancelled) {
  const auto child = start_ready("echo ready; exec sleep $0");
  TaskGroup waiters(io.get_executor());
  waiters.spawn(await_it(child->read(10)));
  waiters.spawn(await_it(child->write(std::string(1'000'000, 'x'))));
  waiters.spawn(await_it(child->exit()));
  waiters.spawn(child->gone());
  io.restart();
  io.poll();
  ASSERT_EQ(waiters.size(), 4U);
  boost::asio::post(io, [&] { waiters.cancel(); });
  EXPECT_TRUE(eventually([&] { return waiters.size() == 0; }));
  EXPECT_EQ(spawner->alive(), 1U);
}

}  // namespace
}  // namespace clawdforge
