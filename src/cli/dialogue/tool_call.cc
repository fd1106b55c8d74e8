#include "cli/dialogue/tool_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/dialogue/line_diff.h"
#include "cli/terminal/text_filter.h"

namespace clawdforge {
namespace {

constexpr TextStyle kFaint{.is_dim = true};
constexpr double kTenths = 10;
constexpr double kMinutes = 120;
constexpr double kSecondsPerMinute = 60;

std::string kept_text(std::string_view text) {
  return filter_text(cut_to(text, kToolTextBytesMax));
}

void append_block(StyledLines& lines, std::string_view label, std::string_view text,
                  std::size_t columns) {
  if (text.empty()) return;
  lines.push_back({{"  " + std::string(label), kFaint}});
  for (StyledText& line :
       wrap({{std::string(text), {}}}, columns, {{"    ", {}}}, {{"    ", {}}})) {
    lines.push_back(std::move(line));
  }
}

TextStyle style_of(char mark) {
  if (mark == '+') return {.colour = Colour::green};
  if (mark == '-') return {.colour = Colour::red};
  return {.is_dim = true};
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < kTenths) return fmt::format("{:.1f} s", seconds);
  if (seconds < kMinutes) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / kSecondsPerMinute);
}

ToolCall::ToolCall(const ToolNews& news, ChatTime now) : id_(news.id), began_(now) {
  apply(news, now);
}

void ToolCall::apply(const ToolNews& news, ChatTime now) {
  if (!news.title.empty()) title_ = filter_line(cut_to(news.title, kToolTextBytesMax));
  if (!news.kind.empty()) kind_ = filter_line(cut_to(news.kind, kToolTextBytesMax));
  if (!news.input.empty()) input_ = kept_text(news.input);
  if (!news.output.empty()) output_ = kept_text(news.output);
  if (!news.diffs.empty()) {
    diffs_.clear();
    added_ = removed_ = 0;
    for (const FileDiff& diff : news.diffs) {
      if (diffs_.size() == kToolDiffsMax) break;
      diffs_.push_back({filter_line(cut_to(diff.path, kToolTextBytesMax)), kept_text(diff.old_text),
                        kept_text(diff.new_text)});
      const LineDiff counted = line_diff(diffs_.back().old_text, diffs_.back().new_text);
      added_ += counted.added;
      removed_ += counted.removed;
    }
  }
  if (news.status == "completed" || news.status == "failed") {
    has_failed_ = news.status == "failed";
    if (!ended_) ended_ = now;
  }
}

void ToolCall::end(ChatTime now) {
  if (ended_) return;
  ended_ = now;
  is_cut_ = true;
}

StyledText ToolCall::line(std::size_t columns, ChatTime now) const {
  StyledText tail;
  if (added_ + removed_ > 0) {
    append_span(tail, fmt::format("  +{}", added_), {.colour = Colour::green});
    append_span(tail, fmt::format(" −{}", removed_), {.colour = Colour::red});
  }
  const double seconds = std::chrono::duration<double>(ended_.value_or(now) - began_).count();
  append_span(tail, "  " + duration_text(seconds), kFaint);
  if (has_failed_) append_span(tail, "  failed", {.colour = Colour::red});
  if (is_cut_) append_span(tail, "  not finished", kFaint);

  StyledText line;
  const Colour colour = has_failed_ || is_cut_ ? Colour::red
                        : ended_               ? Colour::green
                                               : Colour::yellow;
  append_span(line, ended_ ? "● " : "○ ", {.colour = colour});
  append_span(line, title_.empty() ? (kind_.empty() ? "tool" : kind_) : title_);
  const std::size_t taken = width_of(tail);
  line = cut_to_width(line, columns > taken ? columns - taken : 1);
  append_spans(line, tail);
  return cut_to_width(line, columns);
}

StyledLines ToolCall::details(std::size_t columns) const {
  StyledLines lines;
  for (const FileDiff& diff : diffs_) {
    lines.push_back({{"  " + diff.path, kFaint}});
    for (const DiffLine& changed : line_diff(diff.old_text, diff.new_text).lines) {
      const StyledText text = {
          {fmt::format("{} {}", changed.mark, changed.text), style_of(changed.mark)}};
      for (StyledText& line : wrap_hard(text, columns, {{"    ", {}}}, {{"      ", {}}})) {
        lines.push_back(std::move(line));
      }
    }
  }
  if (diffs_.empty()) append_block(lines, "input", input_, columns);
  append_block(lines, "output", output_, columns);
  if (lines.empty()) lines.push_back({{"  nothing more was said about it", kFaint}});
  return lines;
}

}  // namespace clawdforge
