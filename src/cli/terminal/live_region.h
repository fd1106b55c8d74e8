// The last lines on a terminal, which change while an agent works. What is settled scrolls up and
// is never touched again; the rest is drawn over. Gives the bytes to write, and writes nothing
// itself. Pure.
//
// Between two drawings the cursor stands at the beginning of the line below the region.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal/styled_text.h"

namespace clawdforge {

class LiveRegion {
 public:
  // `settled` follows what was settled before, and `live` follows that. `rows` are those of the
  // terminal: lines that have left it at the top cannot be changed any more.
  std::string draw(const StyledLines& settled, const StyledLines& live, std::size_t rows);

  // Takes the region off the screen.
  std::string erase();

  // The screen was cleared, or all that is on it is settled.
  void forget();

 private:
  std::vector<std::string> drawn_;  // the lines that can still be reached
  std::size_t unreachable_ = 0;     // lines of the region above them
};

}  // namespace clawdforge
