#include "cli/terminal/live_region.h"

#include <fmt/format.h>

#include <algorithm>

namespace clawdforge {
namespace {

constexpr std::string_view kEraseToLineEnd = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

std::string move_up(std::size_t lines) {
  return lines == 0 ? std::string() : fmt::format("\x1b[{}A", lines);
}

}  // namespace

std::string LiveRegion::draw(const StyledLines& settled, const StyledLines& live,
                             std::size_t rows) {
  std::vector<std::string> lines;
  lines.reserve(settled.size() + live.size());
  for (const StyledText& line : settled) lines.push_back(encode(line, true));
  for (const StyledText& line : live) lines.push_back(encode(line, true));
  const std::size_t skipped = std::min(unreachable_, lines.size());
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(skipped));

  const auto differs = std::ranges::mismatch(drawn_, lines);
  const auto same = static_cast<std::size_t>(differs.in1 - drawn_.begin());
  std::string out = move_up(drawn_.size() - same);
  for (std::size_t i = same; i < lines.size(); ++i) {
    out.append(lines[i]).append(kEraseToLineEnd).append("\n");
  }
  if (lines.size() < drawn_.size()) out += kEraseBelow;

  const std::size_t reachable = std::min(rows > 1 ? rows - 1 : 1, live.size());
  unreachable_ = live.size() - reachable;
  const std::size_t kept = std::min(reachable, lines.size());
  unreachable_ += reachable - kept;
  drawn_.assign(lines.end() - static_cast<std::ptrdiff_t>(kept), lines.end());
  return out;
}

std::string LiveRegion::erase() {
  const std::string out = move_up(drawn_.size()) + std::string(kEraseBelow);
  forget();
  return out;
}

void LiveRegion::forget() {
  drawn_.clear();
  unreachable_ = 0;
}

}  // namespace clawdforge
