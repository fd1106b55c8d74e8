// Colours for code: comments, strings, numbers and keywords, by the family of the language. A
// language that is not known has no colours. Pure.
#pragma once

#include <string_view>

#include "cli/terminal/styled_text.h"

namespace clawdforge {

// One entry for each line of the code.
StyledLines highlight(std::string_view code, std::string_view language);

}  // namespace clawdforge
