#include "launcher/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include "launcher/order.h"

namespace launcher {

namespace {

// Of -1000 to 1000; zero is the usual one. A process with 500 counts as if it used half of the
// memory more than it does.
constexpr int kAgentOomScore = 500;

// More than the kernel has or will have soon; it says where they end.
constexpr int kCapabilitiesMax = 256;

// Root keeps one. Without it the kernel (from 5.12 on) lets root make no user namespace of its own,
// which the sandboxes of agents need. It allows no more than root can do without: who owns a
// program may make it a set-user-ID one.
constexpr int kKeptOfRoot = CAP_SETFCAP;
static_assert(kKeptOfRoot < 32);  // its place is in the first word

}  // namespace

Answer drop_privileges() {
  Answer answer = call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
  if (answer < 0) return answer;
  const bool is_root = call(SYS_geteuid) == 0;
  // An ordinary user may not change this set, and has none of it either.
  for (int capability = 0; capability < kCapabilitiesMax; ++capability) {
    if (is_root && capability == kKeptOfRoot) continue;
    // Asked first: to take one away costs many times as much, and the gateway of root has left us
    // few.
    const Answer is_there = call(SYS_prctl, PR_CAPBSET_READ, capability);
    if (is_there == -EINVAL) break;
    if (is_there != 0) call(SYS_prctl, PR_CAPBSET_DROP, capability);
  }
  __user_cap_header_struct self = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct ours[_LINUX_CAPABILITY_U32S_3] = {};
  answer = call(SYS_capget, &self, ours);
  if (answer < 0) return answer;
  const unsigned kept = is_root ? ours[0].permitted & (1U << kKeptOfRoot) : 0;
  ours[0] = {kept, kept, 0};
  ours[1] = {};
  return call(SYS_capset, &self, ours);
}

void offer_to_memory_killer() {
  // Files in /proc of a process that cannot be dumped belong to root. The program will be one that
  // can be, in any case.
  call(SYS_prctl, PR_SET_DUMPABLE, 1);
  const Answer file = call(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  char text[8] = {};
  const Answer size = call(SYS_read, file, text, sizeof text - 1);
  int score = 0;
  for (Answer i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i) {
    score = score * 10 + (text[i] - '0');
  }
  if (score < kAgentOomScore) {  // also where it begins with a minus
    const Line wanted = Line().add(static_cast<unsigned long>(kAgentOomScore));
    call(SYS_write, file, wanted.text(), wanted.size());
  }
  call(SYS_close, file);
}

}  // namespace launcher
