#include "doctor/port_holder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSocketLinesMax = 200'000;
constexpr std::size_t kProcessesMax = 100'000;

// The sockets that listen there: "socket:[INODE]", as the links in /proc/PID/fd have it.
void add_listeners(const char* table, std::uint16_t port, std::set<std::string>& sockets) {
  constexpr std::string_view kListens = "0A";
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);  // the headings
  for (std::size_t count = 0; count < kSocketLinesMax && std::getline(in, line); ++count) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    const auto colon = local.rfind(':');
    if (state != kListens || colon == std::string::npos) continue;
    unsigned found = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
    if (found == port) sockets.insert("socket:[" + inode + "]");
  }
}

bool has_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(process / "fd", error)) {
    std::error_code unread;
    const fs::path target = fs::read_symlink(entry.path(), unread);
    if (!unread && sockets.contains(target.string())) return true;
  }
  return false;
}

}  // namespace

std::string holder_of_port(std::uint16_t port) {
  std::set<std::string> sockets;
  add_listeners("/proc/net/tcp", port, sockets);
  add_listeners("/proc/net/tcp6", port, sockets);
  if (sockets.empty()) return {};
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (++count > kProcessesMax) break;
    if (!has_one_of(entry.path(), sockets)) continue;
    std::ifstream in(entry.path() / "comm");
    std::string program;
    std::getline(in, program);
    return fmt::format("{} (pid {})", program, name);
  }
  return {};  // the gateway lets no user but root look into it
}

}  // namespace clawdforge
