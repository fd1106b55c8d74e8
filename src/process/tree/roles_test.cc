// The main function of this room's tests. Some of them need a process that can be killed,
// or that is another user: they start this program again in one of the roles below.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include <cstdio>
#include <fstream>

#include "process/tree/process_fixture.h"

namespace clawdforge {

OtherProcess::OtherProcess(std::vector<std::string> command, bool has_output) {
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  Descriptor write_end;
  if (has_output) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    output_ = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawnp(&pid_, pointers[0], &files, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) std::abort();
}

OtherProcess::~OtherProcess() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string OtherProcess::read_line() {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd awaited = {output_.number(), POLLIN, 0};
    char byte = 0;
    if (::poll(&awaited, 1, 20'000) <= 0 || ::read(output_.number(), &byte, 1) != 1) break;
    line += byte;
  }
  return line;
}

std::optional<int> OtherProcess::wait_status(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    ::poll(nullptr, 0, 10);
  }
  pid_ = 0;
  return status;
}

namespace {

PidNamespace namespace_named(const std::string& word) {
  return word == "on" ? PidNamespace::on : PidNamespace::off;
}

struct Owner {
  explicit Owner(PidNamespace pid_namespace, bool adopts_orphans = false) {
    ::signal(SIGPIPE, SIG_IGN);
    Spawner::Options options;
    options.pid_namespace = pid_namespace;
    options.kill_grace = std::chrono::milliseconds(200);
    options.adopts_orphans = adopts_orphans;
    auto made = Spawner::make(io.get_executor(), options, log);
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().message.c_str());
      std::_Exit(3);
    }
    spawner = std::move(*made);
  }

  std::unique_ptr<Child> start(const std::string& text, const std::string& mark) {
    auto child = spawner->spawn(
        {.argv = {"sh", "-c", text, mark}, .environment = {{"PATH", kPath}}, .working_dir = "/"});
    if (!child) std::_Exit(4);
    return std::move(*child);
  }

  IoContext io;
  Log log{LogLevel::error, LogFormat::text};
  std::unique_ptr<Spawner> spawner;
};

// own NAMESPACE SCRIPT MARK: starts it, says so, and waits to be killed.
int own(const std::vector<std::string>& words) {
  Owner owner(namespace_named(words[1]));
  const auto child = owner.start(words[2], words[3]);
  run_to_end(owner.io, read_once(child.get()));
  std::puts("ready");
  std::fflush(stdout);
  run_to_end(owner.io, read_once(child.get()));
  return 0;
}

// adopt NAMESPACE SCRIPT MARK: starts it and kills its launcher. Afterwards only processes of
// others are left: an older child, and the tree of another launcher.
int adopt(const std::vector<std::string>& words) {
  OtherProcess stranger({"sleep", "1000"}, false);
  Owner owner(namespace_named(words[1]), true);
  const auto neighbour = owner.start("sleep 1000 & echo ready; wait", "neighbour");
  run_to_end(owner.io, read_once(neighbour.get()));
  const auto child = owner.start(words[2], words[3]);
  run_to_end(owner.io, read_once(child.get()));
  if (processes_with(words[3]).size() < 2) return 2;  // this one has the mark, too
  ::kill(static_cast<pid_t>(child->id().pid), SIGKILL);
  if (run_to_end(owner.io, child->exit()) != ExitStatus(Unknown{})) return 3;
  run_to_end(owner.io, wait_until_gone(child.get()));
  if (processes_with(words[3]) != std::vector{::getpid()}) return 4;
  if (own_children() != fmt::format("{} {} ", stranger.pid(), neighbour->id().pid)) return 5;
  if (stranger.wait_status(std::chrono::seconds(0)) || owner.spawner->alive() != 1) return 6;
  run_to_end(owner.io, stop_spawner(owner.spawner.get()));
  return neighbour->error_tail().empty() ? 0 : 7;
}

// hide NAMESPACE MARK: starts a child while this process is not dumpable, as the gateway
// does it.
int hide(const std::vector<std::string>& words) {
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return 2;
  Owner owner(namespace_named(words[1]));
  const auto child = owner.start("echo ready; exit 5", words[2]);
  const std::string output = run_to_end(owner.io, read_all(child.get()));
  const bool is_right =
      output == "ready\n" && run_to_end(owner.io, child->exit()) == ExitStatus(Exited{5});
  run_to_end(owner.io, stop_spawner(owner.spawner.get()));
  ::prctl(PR_SET_DUMPABLE, 1);  // the leak check looks into this process
  return is_right ? 0 : 1;
}

// refuse: no PID namespace can be made here. Then "on" is an error and "auto" does without.
int refuse(const std::vector<std::string>&) {
  IoContext io;
  Log log(LogLevel::error, LogFormat::text);
  Spawner::Options options;
  options.pid_namespace = PidNamespace::on;
  const auto refused = Spawner::make(io.get_executor(), options, log);
  if (refused || refused.error().code != "no_pid_namespace") return 1;
  std::printf("%s\n", refused.error().message.c_str());
  options.pid_namespace = PidNamespace::automatic;
  auto made = Spawner::make(io.get_executor(), options, log);
  if (!made || (*made)->uses_namespaces()) return 2;
  auto child = (*made)->spawn({.argv = {"true"}, .environment = {}, .working_dir = "/"});
  if (!child || run_to_end(io, (*child)->exit()) != ExitStatus(Exited{0})) return 3;
  run_to_end(io, stop_spawner(made->get()));
  return 0;
}

// The next process here gets this id. Only within a namespace where no other process forks.
bool choose_next_id(pid_t pid) {
  std::ofstream file("/proc/sys/kernel/ns_last_pid");
  file << pid - 1 << std::flush;
  return file.good();
}

// reuse MARK: the first process of a namespace. A program ends, and while its launcher is
// still busy with a stubborn descendant, a stranger gets the program's process id and the
// id of its group. It must live.
int reuse(const std::vector<std::string>& words) {
  if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) return 2;
  Owner owner(PidNamespace::off);
  const auto child = owner.start(
      "setsid sh -c \"trap '' TERM; echo $$; exec sleep $0\" & read line; exit 0", words[1]);
  const pid_t program = std::stoi(run_to_end(owner.io, read_once(child.get())));
  child->close_input();
  run_to_end(owner.io, child->exit());
  while (text_of(fmt::format("/proc/{}/stat", program)) != "") ::sched_yield();
  if (!choose_next_id(program)) return 3;
  OtherProcess stranger({"sleep", words[1]}, false);
  if (stranger.pid() != program || ::getpgid(program) != program) return 4;
  if (owner.spawner->alive() != 1) return 5;  // came too late: nothing was tested
  run_to_end(owner.io, wait_until_gone(child.get()));
  if (stranger.wait_status(std::chrono::seconds(0))) return 6;
  run_to_end(owner.io, stop_spawner(owner.spawner.get()));
  return 0;
}

// be-user FILTER: the tests of that filter as an ordinary user.
int be_user(const std::vector<std::string>& words) {
  constexpr uid_t kUnprivileged = 65534;
  if (::setgroups(0, nullptr) != 0 || ::setgid(kUnprivileged) != 0 || ::setuid(kUnprivileged) != 0)
    return 2;
  const std::string filter = "--gtest_filter=" + words[1];
  ::execl("/proc/self/exe", "process_test", filter.c_str(), "--gtest_brief=1",
          static_cast<char*>(nullptr));
  return 3;
}

int play(const std::vector<std::string>& words) {
  const std::map<std::string, int (*)(const std::vector<std::string>&)> roles = {
      {"own", own},       {"adopt", adopt}, {"hide", hide},
      {"refuse", refuse}, {"reuse", reuse}, {"be-user", be_user}};
  return roles.at(words[0])(words);
}

}  // namespace
}  // namespace clawdforge

int main(int count, char** arguments) {
  if (count > 2 && std::string_view(arguments[1]) == "--role") {
    return clawdforge::play({arguments + 2, arguments + count});
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
