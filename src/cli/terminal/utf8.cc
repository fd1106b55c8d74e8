#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

constexpr char32_t kTailBits = 0x3F;

char32_t replacement(std::string_view& rest) {
  rest.remove_prefix(1);
  return kReplacementCharacter;
}

}  // namespace

char32_t take_code_point(std::string_view& rest) {
  const std::size_t length = utf8_length(rest.front());
  if (length == 1) {
    const auto c = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return c;
  }
  if (length == 0 || rest.size() < length) return replacement(rest);
  char32_t code = static_cast<unsigned char>(rest.front()) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(rest[i]);
    if ((byte & 0xC0U) != 0x80U) return replacement(rest);
    code = (code << 6U) | (byte & kTailBits);
  }
  const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (is_overlong || is_surrogate || code > 0x10FFFF) return replacement(rest);
  rest.remove_prefix(length);
  return code;
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & kTailBits));
  };
  if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
  }
  tail(0);
}

}  // namespace clawdforge
