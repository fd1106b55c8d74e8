#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/version.h"
#include "doctor/checks.h"
#include "process/bounds/cgroups.h"

namespace clawdforge {
namespace {

// Of a file of /proc that holds one number.
std::optional<std::int64_t> number_in(const char* file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

void check_program(const ProgramTrials* trials, Diagnosis& diagnosis) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  diagnosis.good("program", fmt::format("clawdforge {}, {}", kVersion, path.string()));
  if (trials == nullptr) return;
  diagnosis.good("launcher", fmt::format("{}, compiled in; it starts programs", kVersion));
}

void check_namespaces(const ProgramTrials* trials, Diagnosis& diagnosis) {
  const auto user_max = number_in("/proc/sys/user/max_user_namespaces");
  const auto allowed = number_in("/proc/sys/kernel/unprivileged_userns_clone");
  const auto restricted = number_in("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  if (user_max && *user_max == 0) {
    diagnosis.warn("user-namespaces", "the kernel allows none",
                   "sudo sysctl user.max_user_namespaces=15000");
  } else if (allowed && *allowed == 0) {
    diagnosis.warn("user-namespaces", "ordinary users may not make any",
                   "sudo sysctl kernel.unprivileged_userns_clone=1");
  } else if (restricted.value_or(0) != 0 && ::geteuid() != 0) {
    diagnosis.warn("user-namespaces", "AppArmor takes their rights away from ordinary users",
                   "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0");
  } else {
    diagnosis.good("user-namespaces", "allowed");
  }
  if (trials == nullptr) return;
  if (trials->uses_namespaces()) {
    diagnosis.good("pid-namespaces", "tried; nothing that an agent starts can escape its end");
  } else {
    diagnosis.warn("pid-namespaces",
                   "tried, and refused: what an agent sets free is followed, not confined",
                   "in a container: allow unshare and a proc mount, such as --privileged; else see "
                   "user-namespaces");
  }
}

// What the agents of a gateway of this user are jailed by, where its configuration says nothing
// else.
void check_jail_means(const ProgramTrials* trials, Diagnosis& diagnosis) {
  if (trials == nullptr) return;
  switch (trials->jail_means()) {
    case JailMeans::own_root:
      diagnosis.good("jail", "tried; each agent can have a root of its own");
      return;
    case JailMeans::rules:
      diagnosis.warn("jail", "tried; only by Landlock, which is weaker: " + trials->jail_obstacle(),
                     "see user-namespaces; docs/security.md names what stays open");
      return;
    case JailMeans::none:
      break;
  }
  diagnosis.warn("jail", "tried, and refused: " + trials->jail_obstacle(), "see user-namespaces");
}

// For a gateway that runs in the group of this process; a service has its own.
void check_limit_means(Diagnosis& diagnosis) {
  Cgroups::Places places;
  places.is_root = ::geteuid() == 0;
  places.only_looks = true;
  const Cgroups found = Cgroups::find(places);
  switch (found.means()) {
    case LimitMeans::cgroup2:
      diagnosis.good("limits", "held by control groups of version 2");
      return;
    case LimitMeans::cgroup1:
      diagnosis.good("limits", "held by control groups of version 1");
      return;
    case LimitMeans::counting:
    case LimitMeans::nothing:
      break;
  }
  diagnosis.good("limits", fmt::format("held by counting, four times a second{}{}",
                                       found.obstacle().empty() ? "" : ": ", found.obstacle()));
}

void check_landlock(Diagnosis& diagnosis) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version > 0) {
    diagnosis.good("landlock", fmt::format("version {} of its interface", version));
  } else {
    // The namespaces do most of its work, so it is not a warning.
    diagnosis.good("landlock", "the kernel has none; jailed agents can use abstract sockets");
  }
}

std::string words_of(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

void check_limits(Diagnosis& diagnosis) {
  constexpr rlim_t kFewDescriptors = 4'096;
  constexpr rlim_t kFewProcesses = 1'024;
  struct rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::string said =
      fmt::format("{} now, at most {}", words_of(files.rlim_cur), words_of(files.rlim_max));
  if (files.rlim_max < kFewDescriptors) {
    diagnosis.warn("descriptors", said + ": few connections can be open",
                   "LimitNOFILE=65536 in the unit, or: ulimit -Hn 65536 (as root)");
  } else {
    diagnosis.good("descriptors", said);
  }
  struct rlimit processes{};
  ::getrlimit(RLIMIT_NPROC, &processes);
  const std::string counted =
      fmt::format("{} now, at most {}", words_of(processes.rlim_cur), words_of(processes.rlim_max));
  if (processes.rlim_cur < kFewProcesses && ::geteuid() != 0) {
    diagnosis.warn("processes", counted + ": an agent needs tens of them",
                   "LimitNPROC=4096 in the unit, or: ulimit -u 4096");
  } else {
    diagnosis.good("processes", counted);
  }
}

}  // namespace

void check_machine(const ProgramTrials* trials, Diagnosis& diagnosis) {
  check_program(trials, diagnosis);
  check_namespaces(trials, diagnosis);
  check_jail_means(trials, diagnosis);
  check_landlock(diagnosis);
  check_limit_means(diagnosis);
  check_limits(diagnosis);
}

}  // namespace clawdforge
