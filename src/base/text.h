// Small questions about text. Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace clawdforge {

// Of the ASCII letters; the others count as they are.
constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower_case, lower_case);
}

}  // namespace clawdforge
