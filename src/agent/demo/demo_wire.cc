#include "agent/demo/demo_wire.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace clawdforge {
namespace {

constexpr std::size_t kDemoUnsentBytesMax = 64 * 1024;

bool is_readable(int descriptor, std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd watched{descriptor, POLLIN, 0};
    const int count = poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (count < 0 && errno == EINTR) continue;
    return count != 0;  // a failure shows in the read that follows
  }
}

}  // namespace

DemoWire::Heard DemoWire::hear(std::string& line, std::optional<std::chrono::milliseconds> wait) {
  flush();
  const auto until = std::chrono::steady_clock::now() + wait.value_or(std::chrono::milliseconds(0));
  std::array<char, 64 * 1024> piece;
  while (true) {
    Heard heard = Heard::line;
    if (take_line(line, heard)) return heard;
    if (wait && !is_readable(input_, until)) return Heard::nothing;
    const ssize_t count = read(input_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Heard::end;
    heard_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// The next whole line of what was read.
bool DemoWire::take_line(std::string& line, Heard& heard) {
  const std::size_t end = heard_.find('\n', searched_);
  if (end == std::string::npos) {
    if (heard_.size() > kDemoLineBytesMax) is_skipping_ = true;
    if (is_skipping_) heard_.clear();
    searched_ = heard_.size();
    return false;
  }
  heard = is_skipping_ || end > kDemoLineBytesMax ? Heard::too_long : Heard::line;
  line = heard == Heard::line ? heard_.substr(0, end) : std::string();
  heard_.erase(0, end + 1);
  searched_ = 0;
  is_skipping_ = false;
  return true;
}

void DemoWire::say(std::string_view json) {
  said_ += json;
  said_ += '\n';
  if (said_.size() > kDemoUnsentBytesMax) flush();
}

void DemoWire::flush() {
  std::string_view left = said_;
  while (!left.empty()) {
    const ssize_t count = write(output_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // the client has gone; the end of the input will tell it
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  said_.clear();
}

}  // namespace clawdforge
