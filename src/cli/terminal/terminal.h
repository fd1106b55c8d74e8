// The terminal that this process has: what it can show, how large it is, and how it treats keys.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace clawdforge {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;

  bool operator==(const TerminalSize&) const = default;
};

// Of the terminal on this descriptor; 80 x 24 where it does not say.
TerminalSize terminal_size(int descriptor);

// Whether live lines and colours may be written to this descriptor: it is a terminal that knows
// escape codes, and NO_COLOR is not set.
bool shows_escape_codes(int descriptor);

// Sets the locale of characters so that the C library, and libedit with it, takes UTF-8 for text,
// also where the environment says nothing.
void use_utf8_locale();

// False: the terminal or the pipe is gone.
bool write_all(int descriptor, std::string_view bytes);

// Keys come one by one and are not shown, until the end of this object. Ctrl-C still makes a
// signal.
class KeyMode {
 public:
  explicit KeyMode(int descriptor);
  ~KeyMode();
  KeyMode(const KeyMode&) = delete;
  KeyMode& operator=(const KeyMode&) = delete;

 private:
  int descriptor_;
  std::optional<termios> before_;
};

}  // namespace clawdforge
