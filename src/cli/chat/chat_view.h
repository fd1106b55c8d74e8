// How a chat is shown: with live lines on a terminal, or plainly. Writes to the process's standard
// output and error. Used by one thread.
#pragma once

#include <string>
#include <string_view>

#include "cli/dialogue/plain_view.h"
#include "cli/dialogue/transcript.h"
#include "cli/terminal/live_region.h"
#include "cli/terminal/terminal.h"

namespace clawdforge {

class ChatView {
 public:
  explicit ChatView(bool is_live);

  bool is_live() const { return is_live_; }
  std::size_t columns() const;

  void apply(const ChatEvent& event);
  // A sentence of the chat itself.
  void note(std::string_view text);
  // Details that were asked for.
  void show(StyledLines lines);
  // The prompt that was typed; it is on the screen already.
  void remember_prompt(std::string_view prompt);
  // One of an earlier turn.
  void show_prompt(std::string_view prompt);
  // `status` stands below all while a turn runs; empty: none does.
  void draw(std::string_view status);
  // The terminal has another size: all that it shows is drawn again.
  void redraw(std::string_view status);

  const AgentQuestion* open_question() const;
  const ToolCall* tool(std::size_t back) const;
  bool has_running_tools() const { return is_live_ && transcript_.running_tools() > 0; }
  // False: nothing can be written any more.
  bool is_good() const { return is_good_; }

 private:
  StyledLines with_status(StyledLines live, std::string_view status) const;

  bool is_live_;
  bool is_good_ = true;
  Transcript transcript_;
  LiveRegion region_;
  PlainView plain_;
  TerminalSize size_;
};

}  // namespace clawdforge
