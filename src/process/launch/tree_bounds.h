// What the launcher is told about a tree's limits: how each is held. Plain records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clawdforge {

// Of these zero means that there is no limit.
struct TreeBounds {
  std::vector<std::string> cgroups = {};  // directories of control groups that it joins
  std::string oom_count = {};   // the file that counts what the kernel ended for its memory
  bool is_oom_polled = false;   // the kernel ends single processes only; the launcher ends the rest
  std::uint64_t pages_max = 0;  // counted by the launcher
  std::uint64_t count_max = 0;  // of processes; likewise
  std::uint64_t processes_max = 0;   // of the tree's user namespace, counted by the kernel
  std::uint64_t data_bytes_max = 0;  // of one process
};

// In the tree's own network, where nothing else listens.
inline constexpr std::uint16_t kProxyPort = 3128;

}  // namespace clawdforge
