#include "process/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/refusals.h"
#include "process/launch/launch_order.h"

extern "C" {  // which this header of glibc 2.36 forgets
#include <sys/pidfd.h>
}

namespace clawdforge {

namespace {

// In the launcher, as src/launcher/order.h has them.
constexpr int kOwnFile = 3;
constexpr int kLifeline = 4;
constexpr int kReport = 5;
constexpr int kOrder = 6;
constexpr int kOutlet = 7;
constexpr int kFirstOutOfTheWay = 10;

// To make namespaces and mounts, to work in directories of other users, to end its tree, and to
// take the rest from the program; the last is the one that the program keeps
// (launcher/privileges.cc).
constexpr std::array<unsigned long, 5> kLauncherCapabilities = {CAP_SYS_ADMIN, CAP_DAC_OVERRIDE,
                                                                CAP_KILL, CAP_SETPCAP, CAP_SETFCAP};

std::unexpected<Failure> too_large() {
  return fail(Errc::too_large, "arguments_too_large",
              "The program's arguments and environment are too large.");
}

std::unexpected<Failure> refused(const char* what, int error) {
  if (error == E2BIG) return too_large();
  return no_resources(fmt::format("{}: {}", what, std::strerror(error)));
}

struct Pipe {
  Descriptor ours;
  Descriptor theirs;
};

enum class Direction { to_child, from_child };

// Not open if the system has no more.
Pipe make_pipe(Direction direction) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const int ours = direction == Direction::to_child ? 1 : 0;
  Pipe pipe{Descriptor(ends[ours]), Descriptor(ends[1 - ours])};
  ::fcntl(pipe.ours.number(), F_SETFL, O_NONBLOCK);
  pipe.theirs = move_out_of_the_way(std::move(pipe.theirs));
  return pipe;
}

struct Pipes {
  Pipe input = make_pipe(Direction::to_child);
  Pipe output = make_pipe(Direction::from_child);
  Pipe errors = make_pipe(Direction::from_child);
  Pipe lifeline = make_pipe(Direction::to_child);
  Pipe report = make_pipe(Direction::from_child);

  bool are_open() const {
    return input.theirs.is_open() && output.theirs.is_open() && errors.theirs.is_open() &&
           lifeline.theirs.is_open() && report.theirs.is_open();
  }
};

// Texts in the form that exec wants; they live as long as this.
class TextArray {
 public:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  char* const* pointers() {
    pointers_.clear();
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// What the kernel takes as the arguments and the environment of a program: 128 KiB for one text,
// and a quarter of the stack for all of them.
bool is_too_large(const ChildPlan& plan) {
  constexpr std::size_t kTextBytesMax = 128UL * 1024;
  constexpr std::size_t kAllBytesMax = 2UL * 1024 * 1024;
  std::size_t all = 0;
  bool is_too_long = false;
  const auto count = [&](std::size_t size) {
    is_too_long = is_too_long || size >= kTextBytesMax;
    all += size + 1 + sizeof(char*);
  };
  for (const std::string& argument : plan.argv) count(argument.size());
  for (const auto& [name, value] : plan.environment) count(name.size() + 1 + value.size());
  return is_too_long || all > kAllBytesMax;
}

bool has_zero_byte(std::string_view text) { return text.contains('\0'); }

bool has_zero_byte(const ChildPlan& plan) {
  const auto has = [](const std::string& text) { return has_zero_byte(text); };
  return std::ranges::any_of(plan.argv, has) || has(plan.working_dir) || has(plan.own_dir) ||
         has(plan.also_kept) || has(plan.busy.path) ||
         std::ranges::any_of(plan.environment,
                             [&](const auto& one) { return has(one.first) || has(one.second); }) ||
         (plan.jail && std::ranges::any_of(plan.jail->places, [&](const JailPlace& place) {
            return has(place.path) || has(place.target);
          }));
}

bool wants_listener(const LaunchOptions& options, const ChildPlan& plan) {
  return plan.jail && plan.jail->net == TreeNet::proxy && options.jail == JailMeans::own_root;
}

// A pair of sockets. Not open if the system has no more.
Pipe make_outlet() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  Pipe pair{Descriptor(ends[0]), Descriptor(ends[1])};
  ::fcntl(pair.ours.number(), F_SETFL, O_NONBLOCK);
  pair.theirs = move_out_of_the_way(std::move(pair.theirs));
  return pair;
}

// What happens in the child before its exec.
class SpawnSteps {
 public:
  SpawnSteps(int launcher_file, int order, const Pipes& pipes, const Descriptor& outlet) {
    ::posix_spawn_file_actions_init(&files_);
    place(pipes.input.theirs.number(), STDIN_FILENO);
    place(pipes.output.theirs.number(), STDOUT_FILENO);
    place(pipes.errors.theirs.number(), STDERR_FILENO);
    place(launcher_file, kOwnFile);
    place(pipes.lifeline.theirs.number(), kLifeline);
    place(pipes.report.theirs.number(), kReport);
    place(order, kOrder);
    if (outlet.is_open()) place(outlet.number(), kOutlet);
    note(::posix_spawn_file_actions_addclosefrom_np(&files_,
                                                    outlet.is_open() ? kOutlet + 1 : kOutlet));

    // Its own session: a signal to our process group, a terminal's or a KILL, must not
    // take the launchers along. All signals are blocked until the launcher is in charge,
    // and all are at their defaults, those too that we ignore.
    ::posix_spawnattr_init(&attributes_);
    note(::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
    sigset_t all;
    sigfillset(&all);
    note(::posix_spawnattr_setsigdefault(&attributes_, &all));
    note(::posix_spawnattr_setsigmask(&attributes_, &all));
  }
  SpawnSteps(const SpawnSteps&) = delete;
  SpawnSteps& operator=(const SpawnSteps&) = delete;
  ~SpawnSteps() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }

  int spawn(pid_t& pid, char* const* arguments, char* const* environment) const {
    if (error_ != 0) return error_;
    const std::string file = fmt::format("/proc/self/fd/{}", kOwnFile);
    return ::posix_spawn(&pid, file.c_str(), &files_, &attributes_, arguments, environment);
  }

 private:
  void place(int from, int to) { note(::posix_spawn_file_actions_adddup2(&files_, from, to)); }
  void note(int error) {
    if (error != 0) error_ = error;
  }

  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
  int error_ = 0;
};

}  // namespace

std::unexpected<Failure> no_resources(std::string detail) {
  return fail_for_now(Errc::unavailable, "no_resources",
                      "The system refuses another process at the moment.", std::chrono::seconds(2),
                      std::move(detail));
}

void leave_launcher_capabilities() {
  for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    if (std::ranges::find(kLauncherCapabilities, capability) != kLauncherCapabilities.end())
      continue;
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

Descriptor move_out_of_the_way(Descriptor low) {
  if (!low.is_open() || low.number() >= kFirstOutOfTheWay) return low;
  return Descriptor(::fcntl(low.number(), F_DUPFD_CLOEXEC, kFirstOutOfTheWay));
}

void abandon(Launched launched) {
  // The program has a parent-death signal, and so has the first process of a namespace.
  // The id is ours until we have waited for it, and a killed process does not keep us.
  ::kill(launched.pid, SIGKILL);
  while (::waitpid(launched.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Launched> launch(const LaunchOptions& options, const ChildPlan& plan,
                        const TreeBounds& bounds) {
  if (has_zero_byte(plan)) {
    return fail(Errc::invalid, "zero_byte", "A program's argument cannot hold a zero byte.");
  }
  if (is_too_large(plan)) return too_large();
  TextArray arguments;
  arguments.add("cf-launcher");  // and nothing else: other processes can read it
  TextArray environment;
  for (const auto& [name, value] : plan.environment) environment.add(name + "=" + value);

  Pipes pipes;
  if (!pipes.are_open()) return refused("pipe", errno);
  const Descriptor order = make_order_file(order_text(options, plan, bounds));
  if (!order.is_open()) return refused("memfd_create", errno);
  Pipe outlet;
  if (wants_listener(options, plan)) {
    outlet = make_outlet();
    if (!outlet.theirs.is_open()) return refused("socketpair", errno);
  }
  const SpawnSteps steps(options.launcher_file, order.number(), pipes, outlet.theirs);
  pid_t pid = 0;
  const int error = steps.spawn(pid, arguments.pointers(), environment.pointers());
  if (error != 0) return refused("posix_spawn", error);

  Launched launched{.pid = pid,
                    .pidfd = Descriptor(::pidfd_open(pid, 0)),
                    .lifeline = std::move(pipes.lifeline.ours),
                    .input = std::move(pipes.input.ours),
                    .output = std::move(pipes.output.ours),
                    .errors = std::move(pipes.errors.ours),
                    .report = std::move(pipes.report.ours),
                    .outlet = std::move(outlet.ours)};
  if (!launched.pidfd.is_open()) {
    const int reason = errno;
    abandon(std::move(launched));
    return refused("pidfd_open", reason);
  }
  return launched;
}

}  // namespace clawdforge
