#include "cli/terminal/terminal.h"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <string>

namespace clawdforge {
namespace {

// Below this nothing can be read, and some terminals say 0.
constexpr std::size_t kColumnsMin = 20;
constexpr std::size_t kRowsMin = 4;
// No line is made longer, so that a wrong size costs no memory.
constexpr std::size_t kColumnsMax = 1000;
constexpr std::size_t kRowsMax = 1000;

}  // namespace

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {std::clamp<std::size_t>(size.ws_col, kColumnsMin, kColumnsMax),
          std::clamp<std::size_t>(size.ws_row, kRowsMin, kRowsMax)};
}

bool shows_escape_codes(int descriptor) {
  const char* const no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* const kind = std::getenv("TERM");
  if (kind == nullptr || *kind == '\0' || std::string_view(kind) == "dumb") return false;
  return ::isatty(descriptor) == 1;
}

void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {  // another program has made the terminal non-blocking
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

KeyMode::KeyMode(int descriptor) : descriptor_(descriptor) {
  termios mode{};
  if (::tcgetattr(descriptor, &mode) != 0) return;
  before_ = mode;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_lflag |= ISIG;
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(descriptor, TCSADRAIN, &mode);
}

KeyMode::~KeyMode() {
  if (before_) ::tcsetattr(descriptor_, TCSADRAIN, &*before_);
}

}  // namespace clawdforge
