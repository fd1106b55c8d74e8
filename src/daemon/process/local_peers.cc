#include "daemon/process/local_peers.h"

#include <unistd.h>

#include "process/tree/proc_entry.h"

namespace clawdforge {
namespace {

constexpr int kAncestorsMax = 1024;

// Also true of a process that has ended already, or whose ancestors cannot be told.
bool may_be_ours(pid_t pid) {
  const pid_t self = ::getpid();
  for (int steps = 0; steps < kAncestorsMax; ++steps) {
    if (pid == self) return true;
    const auto entry = proc_entry(pid);
    if (!entry) return true;
    if (entry->parent == self) return true;
    if (entry->parent <= 1) return false;
    pid = entry->parent;
  }
  return true;
}

}  // namespace

bool may_administer(const LocalPeer& peer) {
  const bool is_owner = peer.uid == static_cast<std::int64_t>(::geteuid()) || peer.uid == 0;
  return is_owner && peer.pid > 0 && !may_be_ours(static_cast<pid_t>(peer.pid));
}

}  // namespace clawdforge
