#include "cli/chat/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define CLAWDFORGE_LEAKS_ARE_LIBEDITS const __lsan::ScopedDisabler leaks_are_libedits
#endif
#endif
#ifndef CLAWDFORGE_LEAKS_ARE_LIBEDITS
#define CLAWDFORGE_LEAKS_ARE_LIBEDITS static_cast<void>(0)
#endif

#include "cli/chat/attachments.h"
#include "cli/chat/prompt_history.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPasteBegins = "\x1b[200~";
constexpr std::string_view kPasteEnds = "\x1b[201~";
constexpr std::string_view kPasteModeOn = "\x1b[?2004h";
constexpr std::string_view kPasteModeOff = "\x1b[?2004l";
// Stands for a line end in a line that is being edited, where libedit has no room for one.
constexpr std::string_view kLineEndSign = "␤";
constexpr std::size_t kPasteBytesMax = 1024 * 1024;
constexpr std::string_view kFirstPrompt = "› ";
constexpr std::string_view kNextPrompt = "… ";

std::string with_line_ends(std::string text) {
  for (std::size_t at = text.find(kLineEndSign); at != std::string::npos;
       at = text.find(kLineEndSign, at + 1)) {
    text.replace(at, kLineEndSign.size(), "\n");
  }
  return text;
}

std::string with_signs(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += kLineEndSign;
    else
      out += c;
  }
  return out;
}

}  // namespace

struct LineEditor::State {
  LineEditorOptions options;
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string_view prompt = kFirstPrompt;
  std::deque<unsigned char> typed;  // before the editor began
  bool is_interrupted = false;

  bool next_byte(unsigned char& byte);
  int next_character(wchar_t* out);
  unsigned char complete();
  unsigned char paste();
  void offer(const std::vector<std::string>& candidates, const std::string& begun);
  void remember(const std::string& text);
};

namespace {

// libedit gives its functions the editor alone.
LineEditor::State* state_of(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return static_cast<LineEditor::State*>(data);
}

char* editor_prompt(EditLine* editor) {
  return const_cast<char*>(state_of(editor)->prompt.data());  // literals, which end with a NUL
}

}  // namespace

bool LineEditor::State::next_byte(unsigned char& byte) {
  if (!typed.empty()) {
    byte = typed.front();
    typed.pop_front();
    return true;
  }
  for (;;) {
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {options.signals, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return false;
    if ((ready[1].revents & POLLIN) != 0 && options.on_signal && options.on_signal()) {
      is_interrupted = true;
      return false;
    }
    if (ready[0].revents == 0) continue;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count == 1) return true;
    if (count == 0 || (errno != EINTR && errno != EAGAIN)) return false;
  }
}

int LineEditor::State::next_character(wchar_t* out) {
  unsigned char byte = 0;
  if (!next_byte(byte)) return is_interrupted ? -1 : 0;
  std::string bytes(1, static_cast<char>(byte));
  const std::size_t length = utf8_length(bytes.front());
  while (bytes.size() < length && next_byte(byte)) bytes += static_cast<char>(byte);
  std::string_view rest = bytes;
  *out = static_cast<wchar_t>(take_code_point(rest));
  return 1;
}

void LineEditor::State::offer(const std::vector<std::string>& candidates,
                              const std::string& begun) {
  const std::string common = common_beginning(candidates);
  if (common.size() > begun.size()) {
    el_insertstr(editor, common.substr(begun.size()).c_str());
  } else if (candidates.size() > 1) {
    std::string list = "\n";
    for (const std::string& candidate : candidates) list += candidate + "  ";
    write_all(STDOUT_FILENO, list + "\n");
  }
}

unsigned char LineEditor::State::complete() {
  const LineInfo* line = el_line(editor);
  const std::string before(line->buffer, line->cursor);
  if (before.starts_with('/') && !before.contains(' ')) {
    std::vector<std::string> candidates;
    std::ranges::copy_if(options.commands, std::back_inserter(candidates),
                         [&](const std::string& command) { return command.starts_with(before); });
    offer(candidates, before);
    return CC_REDISPLAY;
  }
  const std::size_t start = before.find_last_of(" \t") + 1;  // npos + 1 is 0
  if (start >= before.size() || before[start] != '@') return CC_ERROR;
  const std::string begun = before.substr(start + 1);
  offer(path_completions(begun), begun);
  return CC_REDISPLAY;
}

unsigned char LineEditor::State::paste() {
  std::string text;
  unsigned char byte = 0;
  while (!text.ends_with(kPasteEnds) && text.size() < kPasteBytesMax && next_byte(byte)) {
    text += byte == '\r' ? '\n' : static_cast<char>(byte);
  }
  if (text.ends_with(kPasteEnds)) text.erase(text.size() - kPasteEnds.size());
  std::erase_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; });
  el_insertstr(editor, with_signs(text).c_str());
  return CC_REFRESH;
}

void LineEditor::State::remember(const std::string& text) {
  HistEvent event;
  ::history(history, &event, H_ENTER, with_signs(text).c_str());
  if (!options.history_file.empty()) append_to_history(options.history_file, text);
}

LineEditor::LineEditor(LineEditorOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  EditLine* const editor = el_init("clawdforge", stdin, stdout, stderr);
  state_->editor = editor;
  state_->history = history_init();
  HistEvent event;
  ::history(state_->history, &event, H_SETSIZE, static_cast<int>(kHistoryEntriesMax));
  ::history(state_->history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_CLIENTDATA, state_.get());
  el_set(editor, EL_PROMPT, editor_prompt);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 0);
  el_set(editor, EL_HIST, ::history, state_->history);
  el_set(
      editor, EL_GETCFN,
      +[](EditLine* e, wchar_t* out) { return state_of(e)->next_character(out); });
  {
    CLAWDFORGE_LEAKS_ARE_LIBEDITS;  // it never frees the names and descriptions of functions
    el_set(
        editor, EL_ADDFN, "chat-complete", "completes a command or a path",
        +[](EditLine* e, int) { return state_of(e)->complete(); });
    el_set(
        editor, EL_ADDFN, "chat-paste", "takes a text that is pasted",
        +[](EditLine* e, int) { return state_of(e)->paste(); });
  }
  el_set(editor, EL_BIND, "^I", "chat-complete", nullptr);
  el_set(editor, EL_BIND, kPasteBegins.data(), "chat-paste", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  for (const std::string& entry : load_history(state_->options.history_file)) {
    ::history(state_->history, &event, H_ENTER, with_signs(entry).c_str());
  }
}

LineEditor::~LineEditor() {
  el_end(state_->editor);
  history_end(state_->history);
}

ReadLine LineEditor::read(const std::string& typed) {
  state_->typed.insert(state_->typed.end(), typed.begin(), typed.end());
  state_->prompt = kFirstPrompt;
  std::string text;
  write_all(STDOUT_FILENO, kPasteModeOn);
  ReadLine result;
  for (std::size_t lines = 0; lines < kPromptLinesMax; ++lines) {
    int count = 0;
    state_->is_interrupted = false;
    const char* line = el_gets(state_->editor, &count);
    if (line == nullptr || count <= 0) {
      result.kind = state_->is_interrupted ? ReadLine::Kind::interrupted : ReadLine::Kind::end;
      break;
    }
    std::string piece(line, static_cast<std::size_t>(count));
    if (piece.ends_with('\n')) piece.pop_back();
    result.kind = ReadLine::Kind::line;
    const bool goes_on = piece.ends_with('\\');
    if (goes_on) piece.back() = '\n';
    text += with_line_ends(std::move(piece));
    if (!goes_on) break;
    state_->prompt = kNextPrompt;
  }
  write_all(STDOUT_FILENO, kPasteModeOff);
  if (result.kind != ReadLine::Kind::line) return result;
  if (text.find_first_not_of(" \t\n") != std::string::npos) state_->remember(text);
  result.text = std::move(text);
  return result;
}

void LineEditor::redraw() {
  el_resize(state_->editor);
  el_set(state_->editor, EL_REFRESH);
}

}  // namespace clawdforge
