// Markdown as lines of a terminal. The text has passed a TextFilter. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/terminal/styled_text.h"

namespace clawdforge {

StyledLines render_markdown(std::string_view source, std::size_t columns);

// Markdown that comes in pieces: what is settled is given once, the rest as it looks so far.
class MarkdownStream {
 public:
  void feed(std::string_view text) { open_ += text; }
  // The lines of all blocks that later text cannot change; each is given once.
  StyledLines take_settled(std::size_t columns);
  // The lines of the block that is still open.
  StyledLines open_lines(std::size_t columns) const;
  std::size_t open_bytes() const { return open_.size(); }
  // No more comes: the lines of the open block, and all is settled.
  StyledLines finish(std::size_t columns);

 private:
  StyledLines lines_of(std::string_view source, std::size_t columns) const;

  std::string open_;  // at most kOpenBlockBytesMax, and what was fed last
  bool has_lines_ = false;
};

// Bytes at the beginning of the source whose lines do not depend on what follows.
std::size_t settled_bytes(std::string_view source);

// A block that is longer is cut in two, so that drawing it again costs little.
inline constexpr std::size_t kOpenBlockBytesMax = 32 * 1024;

}  // namespace clawdforge
