#include "launcher/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "launcher/kernel.h"
#include "launcher/order.h"

namespace launcher {

namespace {

void write_file(const char* path, const Line& line) {
  const Answer file = call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (file < 0) give_up(path, file);
  const Answer written = call(SYS_write, file, line.text(), line.size());
  if (written < 0) give_up(path, written);
  call(SYS_close, file);
}

// Inside, the user has the id that the order names, else the one that it has outside; the ids of
// all other users are not mapped. Without privilege the kernel allows no more than that.
Line map_of(const Order& order, long outside) {
  const auto id = static_cast<unsigned long>(outside);
  return Line().add(order.is_inside_id_wanted ? order.inside_id : id).add(" ").add(id).add(" 1");
}

void map_user(const Order& order, long user, long group) {
  write_file("/proc/self/setgroups", Line().add("deny"));
  write_file("/proc/self/uid_map", map_of(order, user));
  write_file("/proc/self/gid_map", map_of(order, group));
}

[[noreturn]] void wait_outside(long first) {
  // A reader that waits for the end of a pipe must not wait for this process.
  for (int descriptor = 0; descriptor <= kReport; ++descriptor) call(SYS_close, descriptor);
  int status = 0;
  while (call(SYS_wait4, first, &status) == -EINTR) {
  }
  end_process(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// The first process dies with the outer one. Its parent's id looks like 0 from inside,
// dead or alive; so the pipe, whose other end only the outer one has, tells whether it
// died before the kernel was asked.
void die_with_outer(int outer_is_alive) {
  const Answer asked = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (asked < 0) give_up("parent-death-signal", asked);
  pollfd alive = {outer_is_alive, POLLIN, 0};
  const timespec at_once = {};
  if (call(SYS_ppoll, &alive, 1, &at_once) != 0) end_process(1);
  call(SYS_close, outer_is_alive);
}

// Around a tree with a root of its own. Root gets a user namespace as well: what it could do to the
// machine by its capabilities, it cannot do in there.
void make_root_namespaces(const Order& order) {
  const long user = call(SYS_geteuid);
  const long group = call(SYS_getegid);
  constexpr long kNamespaces =
      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
  const long network = order.is_network_wanted ? CLONE_NEWNET : 0;
  const Answer made = call(SYS_unshare, kNamespaces | network);
  if (made < 0) give_up("unshare", made);
  map_user(order, user, group);
}

}  // namespace

void make_namespaces(const Order& order) {
  if (order.is_root_wanted) return make_root_namespaces(order);
  if (order.is_network_wanted) give_up("network", -EINVAL);
  if (!order.is_pid_namespace_wanted && order.hidden_dir == nullptr) return;
  const bool is_pid_wanted = order.is_pid_namespace_wanted;
  const long user = call(SYS_geteuid);
  const long group = call(SYS_getegid);
  Answer made = is_pid_wanted ? call(SYS_unshare, CLONE_NEWPID | CLONE_NEWNS) : -EPERM;
  if (made == -EPERM) {
    // Without a PID namespace root gets one as well: it closes /proc/PID/root and the like of
    // processes outside, which have the whole data directory before them.
    made = call(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | (is_pid_wanted ? CLONE_NEWPID : 0));
    if (made >= 0) map_user(order, user, group);
  }
  // Root, where user namespaces are not allowed.
  if (made < 0 && !is_pid_wanted) made = call(SYS_unshare, CLONE_NEWNS);
  if (made < 0) give_up("unshare", made);
  // What is mounted outside later shows inside, never the reverse.
  const Answer slave = call(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_SLAVE);
  if (slave < 0) give_up("mount-slave", slave);
}

void enter_pid_namespace(const Order& order) {
  int alive[2];
  const Answer piped = call(SYS_pipe2, alive, O_CLOEXEC);
  if (piped < 0) give_up("pipe", piped);
  const Answer first = call(SYS_clone, SIGCHLD);
  if (first < 0) give_up("fork-first", first);
  if (first > 0) wait_outside(first);
  call(SYS_close, alive[1]);
  die_with_outer(alive[0]);
  if (order.is_root_wanted) return;
  constexpr long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const Answer mounted = call(SYS_mount, "proc", "/proc", "proc", kFlags);
  if (mounted < 0) give_up("mount-proc", mounted);
}

}  // namespace launcher
