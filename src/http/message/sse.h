// Server-sent events as text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// `data` has no line break. Without an id the reader keeps the last one that it has.
void append_sse(std::string& out, std::optional<std::int64_t> id, std::string_view event,
                std::string_view data);

// The same in parts, for data that is sent without a copy: this, the data, and kSseEnd.
void append_sse_begin(std::string& out, std::optional<std::int64_t> id, std::string_view event);
inline constexpr std::string_view kSseEnd = "\n\n";

// Keeps a connection from looking dead; readers ignore it.
inline constexpr std::string_view kSseComment = ":\n\n";

}  // namespace clawdforge
