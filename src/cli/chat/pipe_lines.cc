#include "cli/chat/pipe_lines.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace clawdforge {

std::optional<std::string> PipeLines::buffered() {
  const std::size_t end = rest_.find('\n');
  if (end == std::string::npos) {
    if (!has_ended_ && rest_.size() < kPipeLineBytesMax) return std::nullopt;
    if (rest_.empty()) return std::nullopt;
    return std::exchange(rest_, {});
  }
  std::string line = rest_.substr(0, end);
  if (line.ends_with('\r')) line.pop_back();
  rest_.erase(0, end + 1);
  return line;
}

void PipeLines::fill() {
  std::array<char, 64 * 1024> piece;
  const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (count > 0)
    rest_.append(piece.data(), static_cast<std::size_t>(count));
  else if (count == 0 || (errno != EINTR && errno != EAGAIN))
    has_ended_ = true;
}

}  // namespace clawdforge
