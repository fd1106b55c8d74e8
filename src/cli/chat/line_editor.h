// Reads prompts from a terminal with libedit: editing, history, completion, several lines. Blocks.
// One object for a process, because libedit's functions get no context of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

inline constexpr std::size_t kHistoryEntriesMax = 1000;
inline constexpr std::size_t kHistoryBytesMax = 4 * 1024 * 1024;  // of its file that are read
inline constexpr std::size_t kPromptLinesMax = 10'000;            // of one prompt

struct ReadLine {
  enum class Kind { line, interrupted, end };
  Kind kind = Kind::end;
  std::string text{};
};

struct LineEditorOptions {
  std::string history_file{};           // empty: the history is not kept
  std::vector<std::string> commands{};  // "/help", …; offered at the beginning of a line
  int signals = -1;                     // a descriptor that is readable when a signal came
  std::function<bool()> on_signal{};    // true: the line is given up
};

class LineEditor {
 public:
  explicit LineEditor(LineEditorOptions options);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // `typed`: keys that came before; they are taken as if they came now.
  ReadLine read(const std::string& typed);
  // The size of the terminal has changed, and the lines above were drawn again.
  void redraw();

  struct State;  // for the functions that libedit calls

 private:
  std::unique_ptr<State> state_;
};

// Where the history is kept: $XDG_STATE_HOME/clawdforge/chat-history, or below ~/.local/state.
// Empty: there is no home.
std::string chat_history_file();

}  // namespace clawdforge
