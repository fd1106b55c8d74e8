// Text with styles, cut into lines of a width. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// One of the eight colours that every terminal has, so that the owner's palette decides.
enum class Colour : std::uint8_t { normal, red, green, yellow, blue, magenta, cyan };

struct TextStyle {
  Colour colour = Colour::normal;
  bool is_bold = false;
  bool is_dim = false;
  bool is_italic = false;
  bool is_underlined = false;

  bool operator==(const TextStyle&) const = default;
};

struct StyledSpan {
  std::string text;
  TextStyle style;

  bool operator==(const StyledSpan&) const = default;
};

// One line, or a paragraph that is still to be wrapped.
using StyledText = std::vector<StyledSpan>;
using StyledLines = std::vector<StyledText>;

// Joins it to the last span if the style is the same.
void append_span(StyledText& text, std::string_view piece, TextStyle style = {});
void append_spans(StyledText& text, const StyledText& more);

std::size_t width_of(const StyledText& text);
std::string plain_of(const StyledText& text);

// The text as a terminal takes it; `with_codes` false leaves the styles out.
std::string encode(const StyledText& text, bool with_codes);

// Breaks at blanks, between wide characters, and within words that are wider than a line. `first`
// stands in front of the first line, `next` in front of the others. A line feed begins a line.
StyledLines wrap(const StyledText& text, std::size_t columns, const StyledText& first = {},
                 const StyledText& next = {});

// The same without breaking at words, for code: a line that is too long goes on in the next.
StyledLines wrap_hard(const StyledText& text, std::size_t columns, const StyledText& first,
                      const StyledText& next);

// At most so many columns; an ellipsis stands for what is cut off.
StyledText cut_to_width(const StyledText& text, std::size_t columns);

}  // namespace clawdforge
