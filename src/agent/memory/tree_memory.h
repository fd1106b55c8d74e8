// How much memory a process tree has for itself. Blocks: some ten microseconds for each thread of
// the tree, for which /proc has a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "process/tree/child.h"

namespace clawdforge {

// Processes of one tree that are counted.
inline constexpr std::size_t kCountedProcessesMax = 4'096;

// What is resident of it, without what lies in files or is shared, which others may have as well.
// 0: it has ended.
std::uint64_t private_bytes(ProcessId root);

// What the machine has, or the control group of this process, if that is less.
std::uint64_t machine_memory_bytes();

}  // namespace clawdforge
