// Which lines a change takes away and adds. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

struct DiffLine {
  char mark = ' ';  // '+', '-', or ' ' for a line that stays
  std::string text;
};

struct LineDiff {
  std::size_t added = 0;
  std::size_t removed = 0;
  std::vector<DiffLine> lines;  // with a few that stay around each change
};

// Longer changes count as replaced as a whole.
inline constexpr std::size_t kComparedLinesMax = 500;

LineDiff line_diff(std::string_view old_text, std::string_view new_text);

}  // namespace clawdforge
