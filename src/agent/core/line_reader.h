// LineReader cuts an agent's output into lines. Pure: it is fed with pieces as they come,
// and how the output is cut makes no difference. The work grows with the bytes and no
// faster, and while it waits for more it keeps nothing but the line begun.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// An agent that sends a longer line is ended.
inline constexpr std::size_t kAgentLineBytesMax = 32 * 1024 * 1024;

class LineReader {
 public:
  explicit LineReader(std::size_t bytes_max = kAgentLineBytesMax) : bytes_max_(bytes_max) {}

  void feed(std::string piece);
  // The output has ended: what is left counts as a line.
  void finish() { is_finished_ = true; }

  // The next line, without its newline; good until the next call of anything here. None:
  // more must be fed, or a line is too long, after which there is never one again.
  std::optional<std::string_view> next();

  // The line that next() has just given, as a string of its own; a large one is not copied.
  std::string extract(std::string_view line);

  bool is_too_long() const { return is_too_long_; }
  std::size_t held_bytes() const { return buffer_.size(); }

 private:
  const std::size_t bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of what has not been given out
  std::size_t searched_ = 0;  // up to here there is no newline
  bool is_finished_ = false;
  bool is_too_long_ = false;
};

}  // namespace clawdforge
