// The lines between the demo agent and its client: one JSON message each, over two descriptors
// that the caller owns. Blocking; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

inline constexpr std::size_t kDemoLineBytesMax = 32 * 1024 * 1024;

class DemoWire {
 public:
  enum class Heard { line, too_long, nothing, end };

  DemoWire(int input, int output) : input_(input), output_(output) {}
  DemoWire(const DemoWire&) = delete;
  DemoWire& operator=(const DemoWire&) = delete;

  // The next line, without its end. Waits that long for it, or for ever if none is given;
  // what has been said goes out first. A line over the limit is thrown away.
  Heard hear(std::string& line, std::optional<std::chrono::milliseconds> wait);

  // Sends one message, at the latest with the next hear() or flush().
  void say(std::string_view json);
  void flush();

 private:
  bool take_line(std::string& line, Heard& heard);

  const int input_;
  const int output_;
  std::string heard_;
  std::size_t searched_ = 0;  // so far there is no line's end in heard_
  bool is_skipping_ = false;  // the rest of a line that is too long
  std::string said_;
};

}  // namespace clawdforge
