#include "cli/terminal/char_width.h"

#include <algorithm>

#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

bool is_in(std::span<const CodeRange> ranges, char32_t code) {
  const auto found = std::ranges::lower_bound(ranges, code, {}, &CodeRange::last);
  return found != ranges.end() && found->first <= code;
}

}  // namespace

int char_width(char32_t code) {
  if (code < 0x300) return code == 0xAD ? 0 : 1;
  if (is_in(kZeroWidth, code)) return 0;
  return is_in(kWide, code) ? 2 : 1;
}

std::size_t text_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += static_cast<std::size_t>(char_width(take_code_point(text)));
  return width;
}

std::string_view fit_width(std::string_view text, std::size_t columns) {
  std::string_view rest = text;
  std::size_t width = 0;
  std::size_t end = 0;
  while (!rest.empty()) {
    width += static_cast<std::size_t>(char_width(take_code_point(rest)));
    if (width > columns) break;
    end = text.size() - rest.size();
  }
  return text.substr(0, end);
}

}  // namespace clawdforge
