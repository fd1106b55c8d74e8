// Repairs what programs write that is nearly JSON. Pure.
#pragma once

#include <string>
#include <string_view>

namespace clawdforge {

// JavaScript cuts an emoji in two where it cuts a string, and writes the half as an escape
// that is not a character. Such halves become U+FFFD; all else stays as it is.
std::string without_half_characters(std::string_view text);

}  // namespace clawdforge
