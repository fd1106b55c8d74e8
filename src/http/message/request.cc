#include "http/message/request.h"

#include <algorithm>

namespace clawdforge {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower_case(c) >= 'a' && lower_case(c) <= 'f') return lower_case(c) - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const Header& header : headers) {
    if (equals_ignoring_case(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

}  // namespace clawdforge
