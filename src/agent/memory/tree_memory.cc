#include "agent/memory/tree_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "process/tree/proc_entry.h"

namespace clawdforge {
namespace {

// Of one process: the second and the third number of statm, in pages.
std::uint64_t private_bytes_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;
  if (!(file >> size >> resident >> shared) || shared > resident) return 0;
  return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The limit in a directory of the control groups; none: it says "max", or has none.
std::uint64_t limit_in(const std::string& directory) {
  std::ifstream file(directory + "/memory.max");
  std::uint64_t limit = 0;
  return file >> limit ? limit : UINT64_MAX;
}

// A group's limit holds for all groups below it.
std::uint64_t group_limit() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  std::uint64_t limit = UINT64_MAX;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/")) continue;
    const std::string root = "/sys/fs/cgroup";
    for (std::string path = line.substr(3); path.size() > 1;) {
      limit = std::min(limit, limit_in(root + path));
      path.resize(path.find_last_of('/'));
    }
    limit = std::min(limit, limit_in(root));
  }
  return limit;
}

}  // namespace

std::uint64_t private_bytes(ProcessId root) {
  const auto first = static_cast<pid_t>(root.pid);
  const auto entry = proc_entry(first);
  if (!entry || entry->start_time != root.start_time) return 0;
  std::uint64_t bytes = 0;
  std::vector<pid_t> found = {first};
  for (std::size_t i = 0; i < found.size() && i < kCountedProcessesMax; ++i) {
    bytes += private_bytes_of(found[i]);
    const std::vector<pid_t> children = proc_children(found[i]);
    found.insert(found.end(), children.begin(), children.end());
  }
  return bytes;
}

std::uint64_t machine_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(pages * page, group_limit());
}

}  // namespace clawdforge
