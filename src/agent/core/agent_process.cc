#include "agent/core/agent_process.h"

#include "agent/core/masking.h"
#include "process/tree/spawner.h"

namespace clawdforge {

ProcessMark mark_of(const Child& child, const std::string& boot_id) {
  const ProcessId id = child.id();
  return {.pid = id.pid, .start_time = id.start_time, .boot_id = boot_id};
}

std::string shown_tail(std::string_view tail, const std::vector<std::string>& secrets) {
  const std::size_t full = Spawner::Options{}.tail_bytes_max;
  if (tail.size() >= full) {
    const std::size_t blank = tail.substr(0, full / 8).find_first_of(" \t\n");
    if (blank != std::string_view::npos) tail.remove_prefix(blank + 1);
  }
  return masked(tail, secrets);
}

}  // namespace clawdforge
