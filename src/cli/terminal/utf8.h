// Code points in and out of UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clawdforge {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// Bytes of the character that this byte begins; 0: it begins none.
constexpr std::size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  return byte >= 0xF0 && byte <= 0xF4 ? 4 : 0;
}

// Takes the first character off `rest`, which is not empty. What is not UTF-8 is a
// kReplacementCharacter and takes one byte.
char32_t take_code_point(std::string_view& rest);

void append_utf8(std::string& out, char32_t code_point);

}  // namespace clawdforge
