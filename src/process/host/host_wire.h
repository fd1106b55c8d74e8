// What the gateway and the program host say to each other, over the host's standard input
// and output: frames of a kind, the number of an operation, and bytes. Pure. Both sides are
// the same program, so the form is not public and has no version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/tree/exit_status.h"

namespace clawdforge {

// The largest frame is an order with a whole prompt in it.
inline constexpr std::size_t kHostFrameBytesMax = 256 * 1024 * 1024;

enum class HostFrameKind : std::uint8_t {
  start = 1,   // to the host: an order
  output = 2,  // to the gateway: what the program wrote to its standard output
  ended = 3,   // to the gateway: how it ended; nothing follows
};

struct HostFrame {
  HostFrameKind kind = HostFrameKind::start;
  std::uint32_t operation = 0;  // given by the gateway, never twice
  std::string bytes;
};

// One program to run, in the host's own directory.
struct HostOrder {
  std::vector<std::string> argv;         // argv[0] is looked up in the host's PATH
  std::vector<std::string> environment;  // NAME=value, beside the host's own, which they beat
  std::string input;                     // all of its standard input
  // A file that is written before the program starts, readable by us alone. Empty: none.
  std::string file;
  std::string file_content;

  bool operator==(const HostOrder&) const = default;
};

std::string host_frame(HostFrameKind kind, std::uint32_t operation, std::string_view bytes);

std::string encode_order(const HostOrder& order);
std::optional<HostOrder> decode_order(std::string_view bytes);

std::string encode_end(const ExitStatus& status);
ExitStatus decode_end(std::string_view bytes);  // unknown for bytes that are not an end

// Cuts bytes into frames, however they come.
class HostFrameReader {
 public:
  void feed(std::string_view bytes);
  // None: more must be fed, or the bytes are not frames; is_broken() tells which.
  std::optional<HostFrame> next();
  bool is_broken() const { return is_broken_; }
  std::size_t held_bytes() const { return buffer_.size() - begin_; }

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // of what has not been given out
  bool is_broken_ = false;
};

}  // namespace clawdforge
