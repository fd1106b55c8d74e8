// Where the answer and the messages go: each is a terminal or not, which decides on colour, live
// lines and widths. Looked at once, at the start of a command.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clawdforge {

struct Screen {
  bool is_terminal = false;        // standard output
  bool is_error_terminal = false;  // standard error: the place of live lines and questions
  bool is_input_terminal = false;
  bool has_colour = false;      // false with NO_COLOR, TERM=dumb, and in a pipe
  bool has_live_lines = false;  // then also standard error is one
  std::size_t columns = 80;
};

// The columns of a terminal are asked again at each call, for it may have been resized.
Screen look_at_screen();

// The text without control characters and escape codes, but for tabs and line ends. What agents and
// gateways send is foreign, and must not give orders to a terminal.
std::string plain_text(std::string_view text);
// The same in one line: tabs and line ends become spaces.
std::string plain_line(std::string_view text);

// How many columns a terminal needs for a text in UTF-8.
std::size_t columns_of(std::string_view text);
// The beginning of a line, cut to so many columns; its last character is then an ellipsis.
std::string fitted(std::string_view line, std::size_t columns);

enum class Style { plain, bold, dim, red, green, yellow };
// With the codes of the style where the screen has colour.
std::string styled(const Screen& screen, Style style, std::string_view text);

}  // namespace clawdforge
