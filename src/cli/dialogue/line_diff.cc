#include "cli/dialogue/line_diff.h"

#include <algorithm>

namespace clawdforge {
namespace {

constexpr std::size_t kContextLines = 2;

std::vector<std::string_view> lines_of_text(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

using Lines = std::vector<std::string_view>;

void replace_all(const Lines& olds, const Lines& news, std::vector<DiffLine>& out) {
  for (const std::string_view line : olds) out.push_back({'-', std::string(line)});
  for (const std::string_view line : news) out.push_back({'+', std::string(line)});
}

// By the longest common subsequence.
void compare(const Lines& olds, const Lines& news, std::vector<DiffLine>& out) {
  if (olds.size() > kComparedLinesMax || news.size() > kComparedLinesMax) {
    return replace_all(olds, news, out);
  }
  const std::size_t stride = news.size() + 1;
  std::vector<std::size_t> common((olds.size() + 1) * stride, 0);
  for (std::size_t i = olds.size(); i-- > 0;) {
    for (std::size_t j = news.size(); j-- > 0;) {
      common[i * stride + j] =
          olds[i] == news[j] ? common[(i + 1) * stride + j + 1] + 1
                             : std::max(common[(i + 1) * stride + j], common[i * stride + j + 1]);
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < olds.size() || j < news.size()) {
    if (i < olds.size() && j < news.size() && olds[i] == news[j]) {
      out.push_back({' ', std::string(olds[i])});
      ++i;
      ++j;
    } else if (j == news.size() ||
               (i < olds.size() && common[(i + 1) * stride + j] >= common[i * stride + j + 1])) {
      out.push_back({'-', std::string(olds[i++])});
    } else {
      out.push_back({'+', std::string(news[j++])});
    }
  }
}

}  // namespace

LineDiff line_diff(std::string_view old_text, std::string_view new_text) {
  Lines olds = lines_of_text(old_text);
  Lines news = lines_of_text(new_text);
  const auto [old_at, new_at] = std::ranges::mismatch(olds, news);
  const auto same = static_cast<std::size_t>(old_at - olds.begin());
  std::size_t tail = 0;
  while (tail < olds.size() - same && tail < news.size() - same &&
         olds[olds.size() - 1 - tail] == news[news.size() - 1 - tail]) {
    ++tail;
  }
  LineDiff diff;
  for (std::size_t i = same - std::min(same, kContextLines); i < same; ++i) {
    diff.lines.push_back({' ', std::string(olds[i])});
  }
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(same),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  compare(middle(olds), middle(news), diff.lines);
  for (std::size_t i = 0; i < std::min(tail, kContextLines); ++i) {
    diff.lines.push_back({' ', std::string(olds[olds.size() - tail + i])});
  }
  diff.added = static_cast<std::size_t>(std::ranges::count(diff.lines, '+', &DiffLine::mark));
  diff.removed = static_cast<std::size_t>(std::ranges::count(diff.lines, '-', &DiffLine::mark));
  return diff;
}

}  // namespace clawdforge
