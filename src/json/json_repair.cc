#include "json/json_repair.h"

#include <cstddef>

namespace clawdforge {
namespace {

// Length of the hexadecimal escape at text[at] ("\uD83D"), and its number; zero if none.
struct Escape {
  std::size_t length = 0;
  unsigned unit = 0;
};
Escape escape_at(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\\u" || at + 6 > text.size()) return {};
  unsigned unit = 0;
  for (const char c : text.substr(at + 2, 4)) {
    const bool is_digit = c >= '0' && c <= '9';
    const char letter = static_cast<char>(c | 0x20);
    if (!is_digit && (letter < 'a' || letter > 'f')) return {};
    unit = unit * 16 + static_cast<unsigned>(is_digit ? c - '0' : letter - 'a' + 10);
  }
  return {6, unit};
}

}  // namespace

std::string without_half_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Escape escape = escape_at(text, at);
    if (escape.length == 0) {
      // A backslash and what it escapes belong together: \\uD800 is not a \u escape.
      const std::size_t step = text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
      out.append(text, at, step);
      at += step;
      continue;
    }
    const bool is_high = escape.unit >= 0xd800 && escape.unit < 0xdc00;
    const bool is_low = escape.unit >= 0xdc00 && escape.unit < 0xe000;
    const Escape next = is_high ? escape_at(text, at + escape.length) : Escape{};
    const bool is_pair = next.unit >= 0xdc00 && next.unit < 0xe000;
    const std::size_t length = escape.length + (is_pair ? next.length : 0);
    if ((is_high || is_low) && !is_pair) {
      out += "\\ufffd";
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out;
}

}  // namespace clawdforge
