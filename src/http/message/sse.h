// Server-sent events as text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// When an event happened. EventSource ignores these lines, other readers may use them.
struct SseTime {
  std::int64_t at = 0;                      // unix seconds
  std::optional<std::int64_t> offset_ms{};  // since its turn began
};

// `data` has no line break. Without an id the reader keeps the last one that it has.
void append_sse(std::string& out, std::optional<std::int64_t> id, std::string_view event,
                std::string_view data);

// The same in parts, for data that is sent without a copy: this, the data, and kSseEnd.
void append_sse_begin(std::string& out, std::optional<std::int64_t> id, std::string_view event,
                      const std::optional<SseTime>& time = std::nullopt);
inline constexpr std::string_view kSseEnd = "\n\n";

// Keeps a connection from looking dead; readers ignore it.
inline constexpr std::string_view kSseComment = ":\n\n";

}  // namespace clawdforge
