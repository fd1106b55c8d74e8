#include "process/bounds/cgroups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/descriptor.h"
#include "base/refusals.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTreePrefix = "clawdforge-tree-";  // then our process id and a number
constexpr std::string_view kGatewayGroup = "clawdforge-gateway";
constexpr std::uint64_t kPeriodMicroseconds = 100'000;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Zero, or an errno.
int write_to(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return errno;
  return ::write(file.number(), text.data(), text.size()) < 0 ? errno : 0;
}

std::vector<std::string> words_of_line(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream rest(line);
  for (std::string word; std::getline(rest, word, separator);) words.push_back(word);
  return words;
}

bool has_word(const std::string& list, std::string_view wanted, char separator) {
  for (const std::string& word : words_of_line(list, separator)) {
    if (word == wanted) return true;
  }
  return false;
}

// The group `path` of a hierarchy whose part `root` is mounted at `point`; empty: it does not show.
std::string dir_of(const std::string& point, const std::string& root, const std::string& path) {
  if (root == "/") return path == "/" ? point : point + path;
  if (!path.starts_with(root)) return {};
  return point + path.substr(root.size());
}

// The process whose groups these are is there no more.
bool is_of_the_past(const std::string& name) {
  const std::string_view rest = std::string_view(name).substr(kTreePrefix.size());
  int pid = 0;
  const auto [end, error] = std::from_chars(rest.begin(), rest.end(), pid);
  return error == std::errc() && end != rest.end() && *end == '-' && pid > 0 &&
         !fs::exists(fmt::format("/proc/{}", pid));
}

}  // namespace

// One line of mountinfo that is a hierarchy of control groups.
struct Cgroups::Mount {
  std::string root;
  std::string point;
  std::string type;     // cgroup or cgroup2
  std::string options;  // with the controllers of version 1

  static std::vector<Mount> all_in(const std::string& path) {
    std::vector<Mount> mounts;
    std::istringstream lines(text_of(path));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t dash = line.find(" - ");
      if (dash == line.npos) continue;
      const auto before = words_of_line(line.substr(0, dash), ' ');
      const auto after = words_of_line(line.substr(dash + 3), ' ');
      if (before.size() < 5 || after.size() < 3 || !after[0].starts_with("cgroup")) continue;
      mounts.push_back({before[3], before[4], after[0], after[2]});
    }
    return mounts;
  }
};

Cgroups Cgroups::find(const Places& places) {
  Cgroups found;
  const auto mounts = Mount::all_in(places.mounts);
  std::map<std::string, std::string> first;
  std::string second;
  std::istringstream lines(text_of(places.own_groups));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t one = line.find(':');
    const std::size_t two = line.find(':', one + 1);
    if (one == line.npos || two == line.npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1);
    const std::string path = line.substr(two + 1);
    for (const Mount& mount : mounts) {
      if (controllers.empty() && mount.type == "cgroup2") {
        second = dir_of(mount.point, mount.root, path);
      }
      for (const char* name : {"memory", "pids", "cpu"}) {
        if (mount.type == "cgroup" && has_word(controllers, name, ',') &&
            has_word(mount.options, name, ',')) {
          first[name] = dir_of(mount.point, mount.root, path);
        }
      }
    }
  }
  if (!second.empty()) found.use_version_2(second, places.only_looks);
  if (found.means_ != LimitMeans::cgroup2 && places.is_root) found.use_version_1(first);
  for (const auto& [controller, dir] : found.dirs_) {
    if (!places.only_looks) found.remove_old(dir);
  }
  return found;
}

void Cgroups::use_version_2(const std::string& dir, bool only_looks) {
  std::string there = text_of(dir + "/cgroup.controllers");
  if (there.ends_with('\n')) there.pop_back();
  if (!has_word(there, "memory", ' ') || !has_word(there, "pids", ' ')) {
    obstacle_ = "the gateway's control group has no controllers of memory and processes";
    return;
  }
  if (::access((dir + "/cgroup.subtree_control").c_str(), W_OK) != 0) {
    obstacle_ = "the gateway's control group is not given to it: Delegate=memory pids cpu";
    return;
  }
  if (only_looks) {
    means_ = LimitMeans::cgroup2;
    return;
  }
  const std::string own = fmt::format("{}/{}", dir, kGatewayGroup);
  const std::string self = std::to_string(::getpid());
  if (::mkdir(own.c_str(), 0755) != 0 && errno != EEXIST) {
    obstacle_ = fmt::format("mkdir in the gateway's control group: {}", std::strerror(errno));
    return;
  }
  int error = write_to(own + "/cgroup.procs", self);
  const bool has_cpu = has_word(there, "cpu", ' ');
  if (error == 0) {
    error =
        write_to(dir + "/cgroup.subtree_control", has_cpu ? "+memory +pids +cpu" : "+memory +pids");
  }
  if (error != 0) {
    write_to(dir + "/cgroup.procs", self);
    ::rmdir(own.c_str());
    obstacle_ = fmt::format("the gateway's control group holds other processes, too: {}",
                            std::strerror(error));
    return;
  }
  means_ = LimitMeans::cgroup2;
  obstacle_.clear();
  dirs_ = {{"memory", dir}, {"pids", dir}};
  if (has_cpu) dirs_.emplace("cpu", dir);
}

void Cgroups::use_version_1(const std::map<std::string, std::string>& dirs) {
  for (const char* name : {"memory", "pids"}) {
    const auto found = dirs.find(name);
    if (found == dirs.end() || ::access(found->second.c_str(), W_OK) != 0) return;
  }
  means_ = LimitMeans::cgroup1;
  for (const auto& [controller, dir] : dirs) {
    if (::access(dir.c_str(), W_OK) == 0) dirs_.emplace(controller, dir);
  }
}

bool Cgroups::has_processor() const { return dirs_.contains("cpu"); }

void Cgroups::remove_old(const std::string& dir) const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kTreePrefix) && is_of_the_past(name)) ::rmdir(entry.path().c_str());
  }
}

std::string Cgroups::dir_for(const std::string& controller) const {
  const auto found = dirs_.find(controller);
  if (found == dirs_.end()) return {};
  return fmt::format("{}/{}{}-{}", found->second, kTreePrefix, ::getpid(), last_number_);
}

Result<void> Cgroups::make(const TreeLimits& limits, TreeBounds& bounds) {
  ++last_number_;
  const bool is_second = means_ == LimitMeans::cgroup2;
  int error = 0;
  const auto set = [&](const std::string& controller, std::string_view file,
                       const std::string& value, bool is_needed = true) {
    const std::string dir = dir_for(controller);
    if (error != 0 || dir.empty()) return;
    if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
      error = errno;
      return;
    }
    if (std::ranges::find(bounds.cgroups, dir) == bounds.cgroups.end()) {
      bounds.cgroups.push_back(dir);
    }
    const int failed = write_to(fmt::format("{}/{}", dir, file), value);
    if (is_needed) error = failed;
  };
  if (limits.memory_max) {
    const std::string most = std::to_string(*limits.memory_max);
    set("memory", is_second ? "memory.max" : "memory.limit_in_bytes", most);
    // Swap counts, too, where the kernel counts it.
    set("memory", is_second ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
        is_second ? "0" : most, false);
    if (is_second) set("memory", "memory.oom.group", "1");
    bounds.oom_count = dir_for("memory") + (is_second ? "/memory.events" : "/memory.oom_control");
    bounds.is_oom_polled = !is_second;
  }
  if (limits.pids_max) set("pids", "pids.max", std::to_string(*limits.pids_max));
  if (limits.cpu_max_percent) {
    const std::uint64_t quota = *limits.cpu_max_percent * kPeriodMicroseconds / 100;
    if (is_second) set("cpu", "cpu.max", fmt::format("{} {}", quota, kPeriodMicroseconds));
    if (!is_second) set("cpu", "cpu.cfs_period_us", std::to_string(kPeriodMicroseconds));
    if (!is_second) set("cpu", "cpu.cfs_quota_us", std::to_string(quota));
  }
  if (error == 0) return {};
  remove(bounds);
  return fail_for_now(Errc::unavailable, "no_resources",
                      "The system refuses another control group at the moment.",
                      std::chrono::seconds(2), std::strerror(error));
}

bool Cgroups::remove(const TreeBounds& bounds) {
  bool is_done = true;
  for (const std::string& dir : bounds.cgroups) {
    if (::rmdir(dir.c_str()) != 0 && errno == EBUSY) is_done = false;
  }
  return is_done;
}

}  // namespace clawdforge
