#include <algorithm>
#include <optional>

#include "cli/terminal/markdown.h"

namespace clawdforge {
namespace {

constexpr std::size_t kFenceCharactersMin = 3;

struct Fence {
  char mark = '`';
  std::size_t count = 0;
};

std::string_view without_indent(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view() : line.substr(start);
}

std::optional<Fence> fence_of(std::string_view line) {
  line = without_indent(line);
  if (line.empty() || (line.front() != '`' && line.front() != '~')) return std::nullopt;
  const std::size_t count = std::min(line.find_first_not_of(line.front()), line.size());
  if (count < kFenceCharactersMin) return std::nullopt;
  if (line.front() == '`' && line.substr(count).contains('`')) return std::nullopt;
  return Fence{line.front(), count};
}

bool closes(const Fence& opened, std::string_view line) {
  const auto fence = fence_of(line);
  if (!fence || fence->mark != opened.mark || fence->count < opened.count) return false;
  return without_indent(line).find_first_not_of(std::string{opened.mark, ' ', '\t'}) ==
         std::string_view::npos;
}

// Goes through the lines of a source and knows whether it is within a code block.
struct FenceWalk {
  std::optional<Fence> open;
  std::string_view opener;

  void line(std::string_view text) {
    if (open) {
      if (closes(*open, text)) open.reset();
    } else if (const auto fence = fence_of(text)) {
      open = fence;
      opener = text;
    }
  }
};

// Cuts a source that has no settled part: at the end of its last whole line, or anywhere. A code
// block that is cut begins again in the rest.
std::string cut_open_block(std::string& source) {
  const std::size_t line_end = source.rfind('\n');
  std::size_t cut = line_end == std::string::npos ? source.size() : line_end + 1;
  while (cut < source.size() && (static_cast<unsigned char>(source[cut]) & 0xC0U) == 0x80U) ++cut;
  FenceWalk walk;
  for (std::size_t at = 0; at < cut;) {
    const std::size_t end = std::min(source.find('\n', at), cut - 1);
    walk.line(std::string_view(source).substr(at, end - at));
    at = end + 1;
  }
  std::string rest;
  if (walk.open) rest.append(walk.opener).append("\n");
  rest.append(source, cut);
  std::string first = source.substr(0, cut);
  source = std::move(rest);
  return first;
}

}  // namespace

std::size_t settled_bytes(std::string_view source) {
  FenceWalk walk;
  std::size_t settled = 0;
  bool is_after_blank = false;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = source.substr(at, end - at);
    const bool is_blank = without_indent(line).empty();
    if (!walk.open && is_after_blank && !is_blank && line.front() != ' ' && line.front() != '\t') {
      settled = at;
    }
    walk.line(line);
    is_after_blank = is_blank;
    at = end + 1;
  }
  return settled;
}

StyledLines MarkdownStream::lines_of(std::string_view source, std::size_t columns) const {
  StyledLines lines = render_markdown(source, columns);
  if (has_lines_ && !lines.empty()) lines.insert(lines.begin(), StyledText());
  return lines;
}

StyledLines MarkdownStream::take_settled(std::size_t columns) {
  const std::size_t settled = settled_bytes(open_);
  StyledLines lines;
  if (settled > 0) {
    lines = lines_of(std::string_view(open_).substr(0, settled), columns);
    open_.erase(0, settled);
    has_lines_ = has_lines_ || !lines.empty();
  }
  if (open_.size() > kOpenBlockBytesMax) {
    const StyledLines more = lines_of(cut_open_block(open_), columns);
    lines.insert(lines.end(), more.begin(), more.end());
    has_lines_ = true;
  }
  return lines;
}

StyledLines MarkdownStream::open_lines(std::size_t columns) const {
  return lines_of(open_, columns);
}

StyledLines MarkdownStream::finish(std::size_t columns) {
  StyledLines lines = lines_of(open_, columns);
  open_.clear();
  has_lines_ = false;
  return lines;
}

}  // namespace clawdforge
