#include "cli/terminal/styled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/terminal/char_width.h"
#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

constexpr char32_t kJoiner = 0x200D;
constexpr std::size_t kTabColumns = 4;
constexpr std::size_t kTextColumnsMin = 4;  // a line has as many, however deep it is indented

// Terminals disagree on the width of what these make of the character before them: emoji in colour,
// skin tones, families of emoji. Without them each character has the width of the table.
bool changes_width(char32_t code) {
  return code == kJoiner || code == 0xFE0E || code == 0xFE0F ||
         (code >= 0x1F3FB && code <= 0x1F3FF);
}

// A character with the marks that are drawn onto it.
struct Cell {
  std::string text;
  TextStyle style;
  std::size_t width = 0;

  bool is_blank() const { return text == " "; }
  bool is_line_feed() const { return text == "\n"; }
};

void append_cell(std::vector<Cell>& cells, char32_t code, TextStyle style) {
  const auto width = static_cast<std::size_t>(char_width(code));
  const bool is_on_wide = !cells.empty() && cells.back().width == 2;
  if (changes_width(code) && (is_on_wide || code == 0xFE0F || code == 0xFE0E)) return;
  if (width == 0 && !cells.empty() && !cells.back().is_line_feed()) {
    append_utf8(cells.back().text, code);
    return;
  }
  Cell cell{{}, style, code == '\n' ? 0 : width};
  append_utf8(cell.text, code);
  cells.push_back(std::move(cell));
}

std::vector<Cell> cells_of(const StyledText& text) {
  std::vector<Cell> cells;
  for (const StyledSpan& span : text) {
    std::string_view rest = span.text;
    while (!rest.empty()) {
      const char32_t code = take_code_point(rest);
      if (code == '\t') {
        for (std::size_t i = 0; i < kTabColumns; ++i) append_cell(cells, ' ', span.style);
      } else {
        append_cell(cells, code, span.style);
      }
    }
  }
  return cells;
}

StyledText line_of(const StyledText& prefix, const std::vector<Cell>& cells, std::size_t from,
                   std::size_t to) {
  StyledText line = prefix;
  for (std::size_t i = from; i < to; ++i) append_span(line, cells[i].text, cells[i].style);
  return line;
}

std::size_t room_after(const StyledText& prefix, std::size_t columns) {
  const std::size_t taken = width_of(prefix);
  return columns > taken + kTextColumnsMin ? columns - taken : kTextColumnsMin;
}

// Where the line that begins at `from` ends: before `to`; the next begins at `next`.
struct LineEnd {
  std::size_t to;
  std::size_t next;
};

LineEnd find_line_end(const std::vector<Cell>& cells, std::size_t from, std::size_t room,
                      bool is_hard) {
  std::size_t width = 0;
  std::optional<LineEnd> last_break;
  for (std::size_t i = from; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (cell.is_line_feed()) return {i, i + 1};
    if (!is_hard && cell.is_blank()) {
      std::size_t next = i;
      while (next < cells.size() && cells[next].is_blank()) ++next;
      const LineEnd here{i, next};
      if (i > from) last_break = here;
      if (width + (next - i) > room && i > from) return here;
    } else if (!is_hard && i > from && (cell.width == 2 || cells[i - 1].width == 2)) {
      if (!cells[i - 1].is_blank()) last_break = LineEnd{i, i};
    }
    width += cell.width;
    if (width <= room) continue;
    if (last_break) return *last_break;
    return {std::max(i, from + 1), std::max(i, from + 1)};
  }
  return {cells.size(), cells.size()};
}

StyledLines wrap_cells(const StyledText& text, std::size_t columns, const StyledText& first,
                       const StyledText& next, bool is_hard) {
  const std::vector<Cell> cells = cells_of(text);
  StyledLines lines;
  std::size_t from = 0;
  do {
    const StyledText& prefix = lines.empty() ? first : next;
    const LineEnd end = find_line_end(cells, from, room_after(prefix, columns), is_hard);
    lines.push_back(line_of(prefix, cells, from, end.to));
    from = end.next;
  } while (from < cells.size());
  return lines;
}

void append_codes(std::string& out, const TextStyle& style) {
  out += "\x1b[0";
  if (style.is_bold) out += ";1";
  if (style.is_dim) out += ";2";
  if (style.is_italic) out += ";3";
  if (style.is_underlined) out += ";4";
  if (style.colour != Colour::normal) out += fmt::format(";3{}", static_cast<int>(style.colour));
  out += 'm';
}

}  // namespace

void append_span(StyledText& text, std::string_view piece, TextStyle style) {
  if (piece.empty()) return;
  if (!text.empty() && text.back().style == style) {
    text.back().text += piece;
  } else {
    text.push_back({std::string(piece), style});
  }
}

void append_spans(StyledText& text, const StyledText& more) {
  for (const StyledSpan& span : more) append_span(text, span.text, span.style);
}

std::size_t width_of(const StyledText& text) {
  std::size_t width = 0;
  for (const StyledSpan& span : text) width += text_width(span.text);
  return width;
}

std::string plain_of(const StyledText& text) { return encode(text, false); }

std::string encode(const StyledText& text, bool with_codes) {
  std::string out;
  bool is_styled = false;
  for (const StyledSpan& span : text) {
    if (with_codes && (is_styled || span.style != TextStyle{})) {
      is_styled = span.style != TextStyle{};
      append_codes(out, span.style);
    }
    out += span.text;
  }
  if (is_styled) out += "\x1b[0m";
  return out;
}

StyledLines wrap(const StyledText& text, std::size_t columns, const StyledText& first,
                 const StyledText& next) {
  return wrap_cells(text, columns, first, next, false);
}

StyledLines wrap_hard(const StyledText& text, std::size_t columns, const StyledText& first,
                      const StyledText& next) {
  return wrap_cells(text, columns, first, next, true);
}

StyledText cut_to_width(const StyledText& text, std::size_t columns) {
  const std::vector<Cell> cells = cells_of(text);
  std::size_t width = 0;
  for (const Cell& cell : cells) width += cell.width;
  if (width <= columns) return line_of({}, cells, 0, cells.size());
  StyledText line;
  std::size_t used = 1;  // the ellipsis
  for (const Cell& cell : cells) {
    if (used + cell.width > columns) break;
    used += cell.width;
    append_span(line, cell.text, cell.style);
  }
  if (columns > 0) append_span(line, "…", line.empty() ? TextStyle{} : line.back().style);
  return line;
}

}  // namespace clawdforge
