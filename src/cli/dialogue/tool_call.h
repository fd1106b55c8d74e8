// A tool call as a chat shows it: one line that lives while it runs, and its details on demand.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/dialogue/chat_event.h"
#include "cli/terminal/styled_text.h"

namespace clawdforge {

using ChatTime = std::chrono::steady_clock::time_point;

// Of the input, the output and each text of a diff; the rest is not kept.
inline constexpr std::size_t kToolTextBytesMax = 64 * 1024;
inline constexpr std::size_t kToolDiffsMax = 16;  // of one tool call

class ToolCall {
 public:
  ToolCall(const ToolNews& news, ChatTime now);

  void apply(const ToolNews& news, ChatTime now);
  // The turn has ended: what still ran will not be heard of again.
  void end(ChatTime now);

  const std::string& id() const { return id_; }
  const std::string& title() const { return title_; }
  bool has_ended() const { return ended_.has_value(); }

  StyledText line(std::size_t columns, ChatTime now) const;
  StyledLines details(std::size_t columns) const;

 private:
  std::string id_;
  std::string title_;
  std::string kind_;
  std::string input_;
  std::string output_;
  std::vector<FileDiff> diffs_;
  std::size_t added_ = 0;
  std::size_t removed_ = 0;
  bool has_failed_ = false;
  bool is_cut_ = false;
  ChatTime began_;
  std::optional<ChatTime> ended_;
};

// "0.4 s", "12 s", "3 min"
std::string duration_text(double seconds);

}  // namespace clawdforge
