// What was said in a chat, as items that become lines: settled ones once, those that still change
// again and again. Owns the texts that may be drawn again after a resize. Pure; used by one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/dialogue/chat_event.h"
#include "cli/dialogue/tool_call.h"
#include "cli/terminal/markdown.h"
#include "cli/terminal/styled_text.h"
#include "cli/terminal/text_filter.h"

namespace clawdforge {

inline constexpr std::size_t kKeptItemsMax = 500;  // of a transcript, for drawing it again
inline constexpr std::size_t kKeptTextBytesMax = 1024 * 1024;
inline constexpr std::size_t kLiveItemsMax = 16;  // that still change, after one another
inline constexpr std::size_t kKeptToolsMax = 50;  // that /expand knows

class Transcript {
 public:
  struct Frame {
    StyledLines settled;
    StyledLines live;
  };

  void add_prompt(std::string_view prompt);
  // A line of the chat itself, dim.
  void add_note(std::string_view text, TextStyle style = {.is_dim = true});
  // Lines that were made already; they are not wrapped again.
  void add_lines(StyledLines lines);
  void apply(const ChatEvent& event, ChatTime now);

  // What to draw: each settled line is given once.
  Frame next_frame(std::size_t columns, ChatTime now);
  // The last lines of all that is settled, for a screen that was resized. What is live follows with
  // the next frame.
  StyledLines last_lines(std::size_t columns, std::size_t rows, ChatTime now) const;

  // The question that waits for an answer; null: none.
  const AgentQuestion* open_question() const;
  // The tool call that was begun as the last but `back`; null: there is none.
  const ToolCall* tool(std::size_t back) const;
  std::size_t running_tools() const;

 private:
  enum class Kind { prompt, text, thought, tool, plan, question, note, lines, end };
  struct Item {
    Kind kind;
    std::string text{};       // filtered
    TextFilter filter{};      // of text and thought
    MarkdownStream stream{};  // of text
    std::shared_ptr<ToolCall> tool{};
    AgentPlan plan{};
    AgentQuestion question{};
    std::string decision{};  // of a question, in words
    TextStyle style{};
    StyledLines lines{};
    bool is_settled = false;
  };

  Item& add(Kind kind);
  void append_text(Kind kind, std::string_view text);
  void apply_tool(const ToolNews& news, ChatTime now);
  void apply_end(const ChatTurnEnd& end, ChatTime now);
  void decide(const QuestionDecided& decided);
  void settle_streams();
  bool settle(Item& item, std::size_t columns, ChatTime now, StyledLines& out);
  static StyledLines lines_of(const Item& item, std::size_t columns, ChatTime now);
  void begin_item(Kind kind, StyledLines& out);
  void forget_old();

  std::deque<Item> items_;
  std::size_t first_live_ = 0;       // all before it are settled
  bool is_first_begun_ = false;      // some lines of items_[first_live_] are settled already
  std::optional<Kind> last_kind_{};  // of the item whose lines were settled last
  std::size_t kept_bytes_ = 0;
  std::deque<std::shared_ptr<ToolCall>> tools_;
};

// "12 in · 34 out · $0.0012 · 1.2 s"; empty where the agent said nothing.
std::string usage_text(const ChatTurnEnd& end);

}  // namespace clawdforge
