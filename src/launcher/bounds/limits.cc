#include "launcher/bounds/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/resource.h>

namespace launcher {

namespace {

Answer open_in(const char* dir, const char* name, long flags) {
  char path[PATH_MAX];
  size_t size = 0;
  const char* const parts[] = {dir, "/", name};
  for (const char* part : parts) {
    for (; *part != '\0'; ++part) {
      if (size + 1 >= sizeof path) return -ENAMETOOLONG;
      path[size++] = *part;
    }
  }
  path[size] = '\0';
  return call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

// Zero: none. The program can lower it, and cannot raise it again.
Answer set_limit(long which, unsigned long most) {
  if (most == 0) return 0;
  rlimit now = {};
  const Answer asked = call(SYS_prlimit64, 0, which, nullptr, &now);
  if (asked < 0) return asked;
  const unsigned long bound = most < now.rlim_max ? most : now.rlim_max;
  const rlimit limit = {bound, bound};
  return call(SYS_prlimit64, 0, which, &limit);
}

}  // namespace

void open_limits(Order& order) {
  for (int i = 0; i < order.cgroup_count; ++i) {
    const Answer file = open_in(order.cgroups[i], "cgroup.procs", O_WRONLY);
    if (file < 0) give_up("cgroup", file);
    order.cgroup_files[i] = static_cast<int>(file);
  }
  order.oom_file = -1;
  if (order.oom_count == nullptr) return;
  const Answer file = call(SYS_openat, AT_FDCWD, order.oom_count, O_RDONLY | O_CLOEXEC);
  if (file < 0) give_up("oom-count", file);
  order.oom_file = static_cast<int>(file);
}

Answer set_limits(const Order& order) {
  for (int i = 0; i < order.cgroup_count; ++i) {
    const Answer joined = call(SYS_write, order.cgroup_files[i], "0", 1);
    if (joined < 0) return joined;
  }
  Answer set = set_limit(RLIMIT_NPROC, order.processes_max);
  if (set >= 0) set = set_limit(RLIMIT_DATA, order.data_bytes_max);
  if (set >= 0) set = set_limit(RLIMIT_FSIZE, order.file_bytes_max);
  return set;
}

}  // namespace launcher
