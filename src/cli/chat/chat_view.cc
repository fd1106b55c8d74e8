#include "cli/chat/chat_view.h"

#include <unistd.h>

namespace clawdforge {
namespace {

constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";
constexpr std::size_t kPlainColumns = 200;

ChatTime time_now() { return std::chrono::steady_clock::now(); }

}  // namespace

ChatView::ChatView(bool is_live) : is_live_(is_live), size_(terminal_size(STDOUT_FILENO)) {}

// The last column stays free: some terminals begin another line as soon as it is written.
std::size_t ChatView::columns() const { return is_live_ ? size_.columns - 1 : kPlainColumns; }

void ChatView::apply(const ChatEvent& event) {
  if (is_live_)
    transcript_.apply(event, time_now());
  else
    plain_.apply(event, time_now());
}

void ChatView::note(std::string_view text) {
  if (is_live_)
    transcript_.add_note(text);
  else
    plain_.add_note(text);
}

void ChatView::show(StyledLines lines) {
  if (is_live_) return transcript_.add_lines(std::move(lines));
  for (const StyledText& line : lines) plain_.add_note(plain_of(line));
}

void ChatView::remember_prompt(std::string_view prompt) {
  if (!is_live_) return;
  transcript_.add_prompt(prompt);
  // It was typed here, so its lines are there.
  transcript_.next_frame(columns(), time_now());
}

void ChatView::show_prompt(std::string_view prompt) {
  if (is_live_) transcript_.add_prompt(prompt);
}

StyledLines ChatView::with_status(StyledLines live, std::string_view status) const {
  if (status.empty()) return live;
  live.push_back(cut_to_width({{std::string(status), {.is_dim = true}}}, columns()));
  return live;
}

void ChatView::draw(std::string_view status) {
  if (!is_live_) {
    const PlainView::Output out = plain_.take();
    is_good_ = write_all(STDOUT_FILENO, out.answer) && is_good_;
    write_all(STDERR_FILENO, out.messages);
    return;
  }
  Transcript::Frame frame = transcript_.next_frame(columns(), time_now());
  const std::string bytes =
      region_.draw(frame.settled, with_status(std::move(frame.live), status), size_.rows);
  is_good_ = write_all(STDOUT_FILENO, bytes) && is_good_;
  if (status.empty()) region_.forget();
}

void ChatView::redraw(std::string_view status) {
  if (!is_live_) return;
  size_ = terminal_size(STDOUT_FILENO);
  std::string bytes(kClearScreen);
  region_.forget();
  for (const StyledText& line : transcript_.last_lines(columns(), size_.rows, time_now())) {
    bytes += encode(line, true) + "\n";
  }
  is_good_ = write_all(STDOUT_FILENO, bytes) && is_good_;
  draw(status);
}

const AgentQuestion* ChatView::open_question() const {
  return is_live_ ? transcript_.open_question() : plain_.open_question();
}

const ToolCall* ChatView::tool(std::size_t back) const {
  return is_live_ ? transcript_.tool(back) : plain_.tool(back);
}

}  // namespace clawdforge
