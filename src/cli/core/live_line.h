// One line on standard error that changes while the caller waits: what is done, and for how long.
// Nothing is drawn without a terminal.
#pragma once

#include <chrono>
#include <string>

#include "cli/core/screen.h"

namespace clawdforge {

class LiveLine {
 public:
  // An empty text, or no screen: no line.
  LiveLine(const Screen* screen, std::string text);
  ~LiveLine() { erase(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // As it is now. Called again and again.
  void draw();
  // Takes it off the screen; it does not come back.
  void erase();

 private:
  const std::string text_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool is_on_ = false;
  bool is_drawn_ = false;
  std::size_t columns_ = 80;
  std::size_t step_ = 0;
};

}  // namespace clawdforge
