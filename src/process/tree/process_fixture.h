// What the tests of this room share: a Spawner on an event loop, small shell programs, and
// a look at the system's process table. Each test has a mark, which stands in the command
// line of every process of its trees, so that a leftover is found wherever it hides.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <iterator>
#include <variant>

#include "base/async/run_to_end.h"
#include "base/async/timer.h"
#include "base/descriptor.h"
#include "process/tree/spawner.h"

extern char** environ;

namespace clawdforge {

inline constexpr const char* kPath = "/usr/bin:/bin";
inline constexpr std::chrono::seconds kPatience(20);

// Empty if it is not there, or no longer.
inline std::string text_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  ssize_t size = 0;
  while ((size = ::read(file.number(), part, sizeof part)) > 0) {
    text.append(part, static_cast<std::size_t>(size));
  }
  return text;
}

// Ids of processes with `mark` in their command line, launchers included, in whatever
// namespace. A zombie has no command line.
inline std::vector<pid_t> processes_with(const std::string& mark) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (text_of(entry.path() / "cmdline").contains(mark)) found.push_back(std::stoi(name));
  }
  return found;
}

// Unreaped children of ours, of all our threads.
inline std::string own_children() {
  std::string all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    all += text_of(task.path() / "children");
  }
  return all;
}

inline std::size_t own_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// A number that no other test uses; a sleep of that many seconds outlasts any test.
inline std::string new_mark() {
  static std::atomic<int> count = 0;
  return fmt::format("1000.{:07}{:05}", ::getpid(), ++count);
}

// A process that has nothing to do with a Spawner, leading a process group of its own. Its
// standard output is a pipe if wanted. Killed and reaped at the end, if it still runs.
class OtherProcess {
 public:
  OtherProcess(std::vector<std::string> command, bool has_output);
  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  pid_t pid() const { return pid_; }
  std::string read_line();
  // Waits, bounded. None: it runs still.
  std::optional<int> wait_status(std::chrono::seconds patience = kPatience);

 private:
  pid_t pid_ = 0;
  Descriptor output_;
};

// The command that runs this program again in a role of roles_test.cc.
inline std::vector<std::string> in_role(std::vector<std::string> words) {
  words.insert(words.begin(), {"/proc/self/exe", "--role"});
  return words;
}

struct Outcome {
  ExitStatus status;
  std::string output;
  std::string errors;
};

inline Task<std::string> read_all(Child* child) {
  std::string all;
  while (true) {
    const auto bytes = co_await child->read(64 * 1024);
    if (!bytes || bytes->empty()) co_return all;
    all += *bytes;
  }
}

inline Task<std::string> read_once(Child* child) {
  const auto bytes = co_await child->read(4096);
  co_return bytes ? *bytes : "(error)";
}

inline Task<Result<void>> write_and_close(Child* child, std::string bytes) {
  auto written = co_await child->write(std::move(bytes));
  child->close_input();
  co_return written;
}

inline Task<bool> wait_until_gone(Child* child) {
  co_await child->gone();
  co_return true;
}

inline Task<bool> stop_spawner(Spawner* spawner) {
  co_await spawner->stop();
  co_return true;
}

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    const Timer opens_what_the_loop_needs(io.get_executor());
    descriptors_before_ = own_descriptors();
    make_spawner();
  }

  void TearDown() override {
    if (spawner) {
      run_to_end(io, stop_spawner(spawner.get()));
      EXPECT_EQ(spawner->alive(), 0U);
      spawner.reset();
    }
    EXPECT_EQ(own_children(), "");
    EXPECT_TRUE(processes_with(mark).empty());
    io.poll();
    EXPECT_EQ(own_descriptors(), descriptors_before_);
  }

  virtual PidNamespace wanted_namespace() const { return PidNamespace::off; }

  // With other options: the test's own loop and log are kept.
  void make_spawner(std::chrono::milliseconds kill_grace = std::chrono::milliseconds(100),
                    std::optional<std::uint64_t> descriptors_soft = {}) {
    if (spawner) run_to_end(io, stop_spawner(spawner.get()));
    Spawner::Options options;
    options.pid_namespace = wanted_namespace();
    options.kill_grace = kill_grace;
    options.descriptors_soft = descriptors_soft;
    auto made = Spawner::make(io.get_executor(), options, log);
    if (!made && wanted_namespace() == PidNamespace::on) {
      GTEST_SKIP() << "NOT TESTED, because this system allows no PID namespace: "
                   << made.error().message;
    }
    ASSERT_TRUE(made) << made.error().message;
    spawner = std::move(*made);
  }

  ChildPlan plan_of(std::vector<std::string> argv) const {
    return {.argv = std::move(argv), .environment = {{"PATH", kPath}}, .working_dir = "/"};
  }

  // $0 is the mark.
  ChildPlan script(const std::string& text) const { return plan_of({"sh", "-c", text, mark}); }

  std::unique_ptr<Child> start(const ChildPlan& plan) {
    auto child = spawner->spawn(plan);
    if (!child) throw std::runtime_error(child.error().message + " " + child.error().detail);
    return std::move(*child);
  }

  // Starts a script and waits until it has printed a line.
  std::unique_ptr<Child> start_ready(const std::string& text) {
    auto child = start(script(text));
    EXPECT_EQ(run_to_end(io, read_once(child.get())), "ready\n") << child->error_tail();
    return child;
  }

  Outcome run(const ChildPlan& plan) {
    const auto child = start(plan);
    child->close_input();
    std::string output = run_to_end(io, read_all(child.get()));
    const ExitStatus status = run_to_end(io, child->exit());
    return {status, std::move(output), std::string(child->error_tail())};
  }

  // Lets the loop run until it is so, bounded.
  template <class Condition>
  bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  const std::string mark = new_mark();
  IoContext io;
  // Asio ends a run when there is nothing to do; the tests wait for other things too.
  boost::asio::executor_work_guard<IoExecutor> keep_waiting{io.get_executor()};
  Log log{LogLevel::error, LogFormat::text};
  std::unique_ptr<Spawner> spawner;

 private:
  std::size_t descriptors_before_ = 0;
};

// Each of these runs with and without a namespace around the tree, and spawner_test.cc
// runs all of them once more as an ordinary user.
class TreeTest : public ProcessTest, public testing::WithParamInterface<PidNamespace> {
 protected:
  PidNamespace wanted_namespace() const override { return GetParam(); }
};

inline std::string name_of_namespace(const testing::TestParamInfo<PidNamespace>& info) {
  return info.param == PidNamespace::on ? "InNamespace" : "WithoutNamespace";
}

}  // namespace clawdforge
