#include "cli/input/prompting.h"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace clawdforge {
namespace {

constexpr std::size_t kPromptBytesMax = 64 * 1024 * 1024;  // the gateway's own limit is lower
constexpr std::size_t kTypedBytesMax = 4096;

// Without its line end.
std::string read_typed_line() {
  std::string line;
  char c = 0;
  while (line.size() < kTypedBytesMax && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
    line += c;
    if (c == '\x03') break;
  }
  while (line.ends_with('\r')) line.pop_back();
  return line;
}

// A terminal without echo until this dies.
class NoEcho {
 public:
  explicit NoEcho(bool is_terminal) : is_on_(is_terminal && ::tcgetattr(STDIN_FILENO, &old_) == 0) {
    if (!is_on_) return;
    termios quiet = old_;
    // Ctrl-C comes as a character then: the terminal must not be left without echo.
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    quiet.c_cc[VEOL] = '\x03';
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  ~NoEcho() {
    if (is_on_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &old_);
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;

 private:
  termios old_{};
  bool is_on_;
};

}  // namespace

Asked<std::string> read_prompt(const Screen& screen) {
  if (screen.is_input_terminal) {
    fmt::print(stderr, "Reading the prompt from the terminal; Ctrl-D ends it.\n");
  }
  std::string text;
  std::array<char, 64 * 1024> piece;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
    if (text.size() > kPromptBytesMax) {
      return complain(kExitUsage, "the prompt is too long; bring it as a file with --file.");
    }
    // A terminal gives a line that does not end only when Ctrl-D was pressed in it.
    if (screen.is_input_terminal && !text.ends_with('\n')) {
      fmt::print(stderr, "\n");
      break;
    }
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    return complain(kExitUsage,
                    "the prompt is empty; write it after the command, or send it to its "
                    "standard input.");
  }
  return text;
}

Asked<std::string> prompt_of(const Invocation& invocation, std::size_t word) {
  std::string prompt = invocation.arguments.word(word);
  if (prompt.empty() || prompt == "-") return read_prompt(invocation.screen);
  return prompt;
}

Asked<Secret> read_secret(const Screen& screen, std::string_view question) {
  std::string line;
  {
    // Before the question: what is typed at once must not be echoed either.
    const NoEcho quiet(screen.is_input_terminal);
    if (screen.is_input_terminal) fmt::print(stderr, "{}", question);
    line = read_typed_line();
  }
  if (screen.is_input_terminal) fmt::print(stderr, "\n");
  if (line.find('\x03') != line.npos) return complain(kExitInterrupted, "interrupted.");
  if (line.empty()) return complain(kExitUsage, "there was no token on standard input.");
  return Secret(std::move(line));
}

bool is_yes(const Screen& screen, std::string_view question) {
  if (!screen.is_input_terminal || !screen.is_error_terminal) return false;
  fmt::print(stderr, "{} [Y/n] ", question);
  std::string line;
  char c = 0;
  ssize_t count = 0;
  while (line.size() < kTypedBytesMax && (count = ::read(STDIN_FILENO, &c, 1)) == 1 && c != '\n') {
    line += c;
  }
  if (count != 1) return false;
  return line.empty() || line[0] == 'y' || line[0] == 'Y';
}

}  // namespace clawdforge
