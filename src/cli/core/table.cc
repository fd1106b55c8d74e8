#include "cli/core/table.h"

#include <algorithm>
#include <numeric>

namespace clawdforge {
namespace {

constexpr std::size_t kGapColumns = 2;
constexpr std::size_t kCellColumnsMin = 6;  // a column is not made narrower than this

void append_tabbed(std::string& text, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += '\t';
    text += cells[i];
  }
  text += '\n';
}

// Takes from the widest column until all fit, or all are at their least.
void shrink(std::vector<std::size_t>& widths, std::size_t columns) {
  const std::size_t gaps = kGapColumns * (widths.size() - 1);
  for (;;) {
    const std::size_t used = std::accumulate(widths.begin(), widths.end(), gaps);
    const auto widest = std::ranges::max_element(widths);
    if (used <= columns || *widest <= kCellColumnsMin) return;
    --*widest;
  }
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = fitted(cells[i], widths[i]);
    line += cell;
    if (i + 1 < cells.size()) line.append(widths[i] - columns_of(cell) + kGapColumns, ' ');
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::string& cell : cells) {
    cell = plain_line(cell);
    if (cell.empty()) cell = "-";
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text(const Screen& screen) const {
  std::string text;
  if (!screen.is_terminal) {
    append_tabbed(text, headings_);
    for (const auto& row : rows_) append_tabbed(text, row);
    return text;
  }
  std::vector<std::size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(columns_of(heading));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  shrink(widths, screen.columns);
  text = styled(screen, Style::bold, line_of(headings_, widths)) + "\n";
  for (const auto& row : rows_) text += line_of(row, widths) + "\n";
  return text;
}

std::string fields_text(const Screen& screen,
                        const std::vector<std::pair<std::string, std::string>>& fields) {
  std::size_t width = 0;
  for (const auto& field : fields) width = std::max(width, columns_of(field.first));
  std::string text;
  for (const auto& [name, value] : fields) {
    text += name;
    if (screen.is_terminal) {
      text.append(width - columns_of(name) + kGapColumns, ' ');
    } else {
      text += '\t';
    }
    text += (value.empty() ? "-" : plain_line(value)) + "\n";
  }
  return text;
}

}  // namespace clawdforge
