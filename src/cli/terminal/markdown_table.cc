#include "cli/terminal/markdown_table.h"

#include <algorithm>
#include <string>

namespace clawdforge {
namespace {

constexpr TextStyle kRule{.is_dim = true};
constexpr std::size_t kGapColumns = 3;      // " │ " between two cells
constexpr std::size_t kCellColumnsMin = 3;  // a column is not made narrower

}  // namespace

void MarkdownTable::begin_cell(bool is_head, bool is_right) {
  rows_.back().is_head = is_head;
  rows_.back().push_back({{}, is_right});
}

// As wide as the widest cell; if that is too much, the widest columns give up what is missing.
std::vector<std::size_t> MarkdownTable::widths(std::size_t columns) const {
  std::vector<std::size_t> widths;
  for (const Row& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), kCellColumnsMin);
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i].text));
    }
  }
  const std::size_t gaps = widths.empty() ? 0 : (widths.size() - 1) * kGapColumns;
  const std::size_t room = columns > gaps ? columns - gaps : 0;
  std::size_t sum = 0;
  for (const std::size_t width : widths) sum += width;
  while (sum > room) {
    const auto widest = std::ranges::max_element(widths);
    if (*widest <= kCellColumnsMin) break;
    // Down to the second widest at once, so that a very wide cell takes few rounds.
    std::size_t second = kCellColumnsMin;
    for (auto it = widths.begin(); it != widths.end(); ++it) {
      if (it != widest) second = std::max(second, *it);
    }
    const std::size_t step =
        std::clamp<std::size_t>(*widest - std::min(second, *widest), 1, sum - room);
    const std::size_t given = std::min(step, *widest - kCellColumnsMin);
    *widest -= given;
    sum -= given;
  }
  return widths;
}

StyledLines MarkdownTable::lines(std::size_t columns) const {
  const std::vector<std::size_t> wide = widths(columns);
  StyledLines out;
  for (const Row& row : rows_) {
    std::vector<StyledLines> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(wrap(row[i].text, wide[i]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t y = 0; y < height; ++y) {
      StyledText line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const StyledText piece = y < cells[i].size() ? cells[i][y] : StyledText();
        const std::size_t used = width_of(piece);
        const std::string blanks(wide[i] > used ? wide[i] - used : 0, ' ');
        if (i > 0) append_span(line, " │ ", kRule);
        if (row[i].is_right) append_span(line, blanks);
        append_spans(line, piece);
        if (!row[i].is_right && i + 1 < cells.size()) append_span(line, blanks);
      }
      out.push_back(cut_to_width(line, columns));
    }
    if (!row.is_head) continue;
    std::string rule;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (i > 0) rule += "─┼─";
      for (std::size_t x = 0; x < wide[i]; ++x) rule += "─";
    }
    out.push_back(cut_to_width({{rule, kRule}}, columns));
  }
  return out;
}

}  // namespace clawdforge
