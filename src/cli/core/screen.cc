#include "cli/core/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <cstdint>
#include <cstdlib>

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

struct CodePoint {
  std::uint32_t value = 0xFFFD;
  std::size_t bytes = 1;
};

// The first character of a text that is not empty. A byte that begins none is one of its own.
CodePoint first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t bytes = 1;
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0) bytes = 2;
  if (lead >= 0xE0 && lead < 0xF0) bytes = 3;
  if (lead >= 0xF0 && lead < 0xF5) bytes = 4;
  if (bytes == 1 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {};
    value = value << 6U | (next & 0x3FU);
  }
  return {value, bytes};
}

// The ranges that terminals draw over two columns.
bool is_wide(std::uint32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF && c != 0x303F) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1F64F) ||
         (c >= 0x1F680 && c <= 0x1F6FF) || (c >= 0x1F900 && c <= 0x1FAFF) ||
         (c >= 0x20000 && c <= 0x3FFFD);
}

// Those that are drawn onto the character before them.
bool is_mark(std::uint32_t c) {
  return (c >= 0x0300 && c <= 0x036F) || (c >= 0x1AB0 && c <= 0x1AFF) ||
         (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE0F) || c == 0x200B ||
         c == 0x200D || (c >= 0xFE20 && c <= 0xFE2F);
}

std::size_t width_of(std::uint32_t c) { return is_mark(c) ? 0 : is_wide(c) ? 2 : 1; }

// Where an escape code ends that begins at `at`: CSI, OSC and their kin, or two characters.
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  if (i >= text.size()) return i;
  const char kind = text[i++];
  if (kind == '[') {
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    return i < text.size() ? i + 1 : i;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') {
    while (i < text.size() && text[i] != '\a' && text[i] != '\x1b' && text[i] != '\n') ++i;
    if (i < text.size() && text[i] == '\a') return i + 1;
    return i + 1 < text.size() && text[i] == '\x1b' && text[i + 1] == '\\' ? i + 2 : i;
  }
  return i;
}

std::string without_controls(std::string_view text, bool keeps_lines) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\x1b') {
      i = end_of_escape(text, i);
      continue;
    }
    const auto [value, bytes] = first_of(text.substr(i));
    const bool is_space = c == '\n' || c == '\t';
    // Also the controls of ISO 6429 in two bytes, and the marks that turn the direction of writing.
    const bool is_control = value < 0x20 || (value >= 0x7F && value < 0xA0) ||
                            (value >= 0x202A && value <= 0x202E) ||
                            (value >= 0x2066 && value <= 0x2069);
    if (is_space) {
      plain += keeps_lines ? c : ' ';
    } else if (value == 0xFFFD && bytes == 1) {
      plain += "\xEF\xBF\xBD";
    } else if (!is_control) {
      plain.append(text.substr(i, bytes));
    }
    i += bytes;
  }
  return plain;
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
  screen.columns = columns_now();
  return screen;
}

std::string plain_text(std::string_view text) { return without_controls(text, true); }

std::string plain_line(std::string_view text) { return without_controls(text, false); }

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [value, bytes] = first_of(text);
    columns += width_of(value);
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string fitted(std::string_view line, std::size_t columns) {
  if (columns_of(line) <= columns) return std::string(line);
  if (columns == 0) return {};
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < line.size()) {
    const auto [value, bytes] = first_of(line.substr(end));
    if (used + width_of(value) > columns - 1) break;
    used += width_of(value);
    end += bytes;
  }
  return std::string(line.substr(0, end)) + "…";
}

std::string styled(const Screen& screen, Style style, std::string_view text) {
  if (!screen.has_colour || style == Style::plain) return std::string(text);
  return std::string("\x1b[").append(code_of(style)).append("m").append(text).append("\x1b[0m");
}

}  // namespace clawdforge
