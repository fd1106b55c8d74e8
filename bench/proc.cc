#include "proc.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace clawdforge {
namespace {

// The number of KiB in the line that begins with `key`.
double kib_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr);
  }
  return 0;
}

// The fields of /proc/PID/stat from the third on: the name before them may hold anything.
std::vector<std::string> stat_fields(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  std::vector<std::string> fields;
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return fields;
  std::istringstream rest(line.substr(name_end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

}  // namespace

Memory memory_of(pid_t pid) {
  return {.rss_kib = kib_in(fmt::format("/proc/{}/status", pid), "VmRSS:"),
          .pss_kib = kib_in(fmt::format("/proc/{}/smaps_rollup", pid), "Pss:")};
}

double cpu_microseconds(pid_t pid) {
  double nanoseconds = 0;
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    std::ifstream file(thread.path() / "schedstat");
    double running = 0;
    if (file >> running) nanoseconds += running;
  }
  return nanoseconds / 1000;
}

double tree_cpu_microseconds(pid_t pid) {
  std::vector<pid_t> tree = descendants(pid);
  tree.push_back(pid);
  double ticks = 0;
  for (const pid_t member : tree) {
    const auto fields = stat_fields(std::to_string(member));
    if (fields.size() < 15) continue;
    // Its own time as a user's and as the system's, and that of its children who have ended.
    for (std::size_t i = 11; i < 15; ++i) ticks += std::strtod(fields[i].c_str(), nullptr);
  }
  return ticks * 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::vector<pid_t> descendants(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto fields = stat_fields(name);
    if (fields.size() > 1) children.emplace(std::atoi(fields[1].c_str()), std::atoi(name.c_str()));
  }
  std::vector<pid_t> found = {pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::string program_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace clawdforge
