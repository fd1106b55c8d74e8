#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace clawdforge {
namespace {

// Length of the valid UTF-8 sequence at `text[at]`, zero if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;   // overlong
    if (first == 0xed) high = 0x9f;  // surrogates
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;   // overlong
    if (first == 0xf4) high = 0x8f;  // beyond U+10FFFF
  }
  if (length == 0 || at + length > text.size()) return 0;
  if (byte(at + 1) < low || byte(at + 1) > high) return 0;
  for (std::size_t i = at + 2; i < at + length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Stands for itself in a JSON string.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

// Appends the character at text[at], which is not ASCII, or its replacement. Gives the
// place after it.
std::size_t append_repaired(std::string& out, std::string_view text, std::size_t at) {
  const std::size_t length = utf8_length(text, at);
  if (length == 0) {
    out += "\xef\xbf\xbd";
    return at + 1;
  }
  out.append(text, at, length);
  return at + length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_characters(out, text);
  out += '"';
}

void append_json_characters(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto plain = std::ranges::find_if_not(text.substr(i), is_plain) - text.substr(i).begin();
    out.append(text, i, static_cast<std::size_t>(plain));
    i += static_cast<std::size_t>(plain);
    if (i == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x80) {
      i = append_repaired(out, text, i);
      continue;
    }
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (byte == '\n') {
      out += "\\n";
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    }
    ++i;
  }
}

void append_printable(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x80) {
      i = append_repaired(out, text, i);
      continue;
    }
    out += (byte < 0x20 || byte == 0x7f) ? '?' : text[i];
    ++i;
  }
}

}  // namespace clawdforge
