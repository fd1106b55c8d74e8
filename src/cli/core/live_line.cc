#include "cli/core/live_line.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

namespace clawdforge {
namespace {

// What is over sooner needs no line, which would only flicker.
constexpr std::chrono::milliseconds kFirstDraw{150};
constexpr std::array<std::string_view, 4> kSpinner = {"◐", "◓", "◑", "◒"};

}  // namespace

LiveLine::LiveLine(const Screen* screen, std::string text) : text_(plain_line(text)) {
  is_on_ = screen != nullptr && screen->has_live_lines && !text_.empty();
  if (screen != nullptr) columns_ = screen->columns;
}

void LiveLine::draw() {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
  if (!is_on_ || passed < kFirstDraw) return;
  const auto line =
      fmt::format("{} {} · {:.1f} s · Ctrl-C cancels", kSpinner[step_], text_, passed.count());
  step_ = (step_ + 1) % kSpinner.size();
  fmt::print(stderr, "\r\x1b[2m{}\x1b[0m\x1b[K", fitted(line, columns_ - 1));
  std::fflush(stderr);
  is_drawn_ = true;
}

void LiveLine::erase() {
  is_on_ = false;
  if (is_drawn_) std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

}  // namespace clawdforge
