// How many columns of a terminal a character takes. Pure: a table of our own instead of the C
// library's wcwidth(), which knows nothing outside ASCII until a locale is set, and says something
// else elsewhere (docs/adr/0040-libraries-of-the-chat.md).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace clawdforge {

struct CodeRange {
  char32_t first;
  char32_t last;
};

// Sorted; scripts/make-width-table makes them.
extern const std::span<const CodeRange> kZeroWidth;
extern const std::span<const CodeRange> kWide;

// 0 for what is drawn onto the character before it, 2 for wide ones, else 1.
int char_width(char32_t code);

// Of a text without control characters.
std::size_t text_width(std::string_view text);

// The beginning of the text that fits into so many columns, with the marks that belong to its last
// character.
std::string_view fit_width(std::string_view text, std::size_t columns);

}  // namespace clawdforge
