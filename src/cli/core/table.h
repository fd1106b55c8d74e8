// Rows for people: on a terminal in columns that fit its width, else separated by tabs, with the
// headings as the first line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/core/screen.h"

namespace clawdforge {

class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

  // As many cells as there are headings. Control characters are taken out.
  void add(std::vector<std::string> cells);
  std::string text(const Screen& screen) const;

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

// Names and values, one a line: aligned on a terminal, else separated by a tab.
std::string fields_text(const Screen& screen,
                        const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace clawdforge
