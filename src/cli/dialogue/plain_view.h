// A chat without live lines and escape codes, for pipes and plain terminals: what the agent says
// goes to standard output as it comes, everything else to standard error, a line each. Gives the
// bytes to write, and writes nothing itself. Pure.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "cli/dialogue/chat_event.h"
#include "cli/dialogue/tool_call.h"
#include "cli/terminal/text_filter.h"

namespace clawdforge {

class PlainView {
 public:
  struct Output {
    std::string answer;    // standard output
    std::string messages;  // standard error
  };

  void apply(const ChatEvent& event, ChatTime now);
  void add_note(std::string_view text);
  // What is to be written now.
  Output take();

  const AgentQuestion* open_question() const {
    return questions_.empty() ? nullptr : &questions_.front();
  }
  const ToolCall* tool(std::size_t back) const {
    return back < tools_.size() ? &tools_[tools_.size() - 1 - back] : nullptr;
  }

 private:
  void apply_text(const AgentText& text);
  void apply_tool(const ToolNews& news, ChatTime now);
  void apply_question(const AgentQuestion& question);
  void apply_end(const ChatTurnEnd& end, ChatTime now);
  void end_line();

  TextFilter filter_;
  Output out_;
  bool is_within_line_ = false;  // the answer's last line has no end yet
  bool wants_gap_ = false;       // other things came between two pieces of the answer
  std::deque<ToolCall> tools_;   // at most kKeptToolsMax
  std::deque<AgentQuestion> questions_;
};

}  // namespace clawdforge
