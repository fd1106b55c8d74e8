// Lines from standard input that is not a terminal. Blocks only where it says so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace clawdforge {

inline constexpr std::size_t kPipeLineBytesMax = 16 * 1024 * 1024;

class PipeLines {
 public:
  // The next line that is there already.
  std::optional<std::string> buffered();
  // Reads what standard input has; waits if it has nothing.
  void fill();
  bool has_ended() const { return has_ended_ && rest_.empty(); }

 private:
  std::string rest_;
  bool has_ended_ = false;
};

}  // namespace clawdforge
