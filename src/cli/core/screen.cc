#include "cli/core/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/terminal/char_width.h"
#include "cli/terminal/text_filter.h"

namespace clawdforge {
namespace {

constexpr std::size_t kColumnsMin = 20;

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::size_t columns_now() {
  winsize size{};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= kColumnsMin) {
      return size.ws_col;
    }
  }
  return Screen{}.columns;
}

const char* code_of(Style style) {
  switch (style) {
    case Style::bold:
      return "1";
    case Style::dim:
      return "2";
    case Style::red:
      return "31";
    case Style::green:
      return "32";
    case Style::yellow:
      return "33";
    case Style::plain:
      break;
  }
  return "0";
}

}  // namespace

Screen look_at_screen() {
  Screen screen;
  screen.is_terminal = ::isatty(STDOUT_FILENO) == 1;
  screen.is_error_terminal = ::isatty(STDERR_FILENO) == 1;
  screen.is_input_terminal = ::isatty(STDIN_FILENO) == 1;
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind != nullptr && std::string_view(kind) == "dumb";
  screen.has_colour = screen.is_terminal && !is_set("NO_COLOR") && !is_dumb;
  screen.has_live_lines = screen.has_colour && screen.is_error_terminal;
  screen.columns = columns_now();
  return screen;
}

std::string plain_text(std::string_view text) { return filter_text(text); }

std::string plain_line(std::string_view text) { return filter_line(text); }

std::size_t columns_of(std::string_view text) { return text_width(text); }

std::string fitted(std::string_view line, std::size_t columns) {
  if (columns_of(line) <= columns) return std::string(line);
  if (columns == 0) return {};
  return std::string(fit_width(line, columns - 1)) + "…";
}

std::string styled(const Screen& screen, Style style, std::string_view text) {
  if (!screen.has_colour || style == Style::plain) return std::string(text);
  return std::string("\x1b[").append(code_of(style)).append("m").append(text).append("\x1b[0m");
}

}  // namespace clawdforge
