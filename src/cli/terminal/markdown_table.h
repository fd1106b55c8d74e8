// The table of a Markdown text: collects cells, and makes lines that fit into a width. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/terminal/styled_text.h"

namespace clawdforge {

class MarkdownTable {
 public:
  void begin_row() { rows_.emplace_back(); }
  void begin_cell(bool is_head, bool is_right);
  void set_cell(StyledText text) { rows_.back().back().text = std::move(text); }

  StyledLines lines(std::size_t columns) const;

 private:
  struct Cell {
    StyledText text;
    bool is_right = false;
  };
  struct Row : std::vector<Cell> {
    bool is_head = false;
  };

  std::vector<std::size_t> widths(std::size_t columns) const;

  std::vector<Row> rows_;
};

}  // namespace clawdforge
