// Appending whole numbers to a text that is written piece by piece: several times as fast as a
// format, which has to be read first.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace clawdforge {

// `text`, and then the number.
void append_numbered(std::string& out, std::string_view text, std::integral auto number) {
  const fmt::format_int digits(number);
  out.append(text).append(digits.data(), digits.size());
}

}  // namespace clawdforge
