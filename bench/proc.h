// What the kernel says about a process that is measured.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace clawdforge {

struct Memory {
  double rss_kib = 0;
  double pss_kib = 0;  // 0: one may not look
};

Memory memory_of(pid_t pid);
// Of all threads that it has now.
double cpu_microseconds(pid_t pid);
// Of the process and all below it, those that have ended too; to the hundredth of a second.
double tree_cpu_microseconds(pid_t pid);
// Its children, theirs, and so on.
std::vector<pid_t> descendants(pid_t pid);
// The path of its program; empty: one may not look.
std::string program_of(pid_t pid);
double load_average();

}  // namespace clawdforge
