// What /run gives as `result`: the agent's text, freed of a surrounding code fence, as
// JSON if it is JSON, else as a string.
#pragma once

#include <string>
#include <string_view>

namespace clawdforge {

// JSON text, valid in any case. Numbers keep all their digits.
std::string result_value(std::string_view text);

}  // namespace clawdforge
