// Server-sent events out of the pieces of a stream. Pure; one parser for one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// Good while the function that gets it runs.
struct ServerEvent {
  std::optional<std::uint64_t> id;
  std::string_view name;  // "message" where the stream does not say
  std::string_view data;
};

inline constexpr std::size_t kEventBytesMax = 64 * 1024 * 1024;

class EventParser {
 public:
  using TakeEvent = std::function<void(const ServerEvent&)>;

  // False: an event is longer than kEventBytesMax, or its id is not a number; the stream is not a
  // gateway's.
  bool feed(std::string_view piece, const TakeEvent& take);

 private:
  bool take_line(std::string_view line, const TakeEvent& take);

  std::string rest_;  // the beginning of a line
  std::string name_;
  std::string data_;
  std::optional<std::uint64_t> id_;
};

}  // namespace clawdforge
