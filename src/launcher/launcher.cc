// The launcher stands between the gateway and one program that the gateway runs. It starts
// the program, tells how it ended, and sees to it that no process of its tree outlives the
// gateway's interest: the lifeline ends also when the gateway is killed. It is a static
// program that allocates nothing, because it is started each time and must not fail
// halfway.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include "launcher/bounds/limits.h"
#include "launcher/bounds/network.h"
#include "launcher/hidden_dir.h"
#include "launcher/kernel.h"
#include "launcher/namespace.h"
#include "launcher/order.h"
#include "launcher/own_root.h"
#include "launcher/tree.h"

namespace launcher {

namespace {

// Also so that no process holds on to a directory of the gateway's, where it was started. What is
// seen from there is what the program sees.
void enter_working_dir(const Order& order) {
  const Answer changed = call(SYS_chdir, order.working_dir);
  if (changed < 0) give_up("chdir", changed);
}

}  // namespace

int run(char** environment) {
  call(SYS_close, kOwnFile);
  call(SYS_fcntl, kLifeline, F_SETFD, FD_CLOEXEC);
  call(SYS_fcntl, kReport, F_SETFD, FD_CLOEXEC);
  call(SYS_prctl, PR_SET_NAME, "cf-launcher");
  // Only SIGKILL may end the launcher before its tree.
  const SignalSet all = kAllSignals;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);

  Order order = {};
  if (const Answer answer = read_order(order); answer < 0) give_up("order", answer);
  order.environment = environment;
  const bool is_first = order.is_pid_namespace_wanted || order.is_root_wanted;
  open_limits(order);
  make_namespaces(order);
  make_network(order);
  if (!order.is_root_wanted && order.hidden_dir != nullptr) hide_directory(order);
  enter_working_dir(order);
  // From here on no process of the same user may trace us, or use our root and descriptors through
  // /proc. Not earlier: the files in /proc by which a user is mapped would no longer be ours.
  call(SYS_prctl, PR_SET_DUMPABLE, 0);
  if (is_first) enter_pid_namespace(order);
  if (order.is_root_wanted) {
    make_root(order);
    enter_working_dir(order);
  }
  Tree tree(order, is_first);
  tree.start();
  tree.supervise();
  return 0;
}

}  // namespace launcher
