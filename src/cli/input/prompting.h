// What a command reads from its user: a prompt, a secret, a yes or no. Blocks. Questions go to
// standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/secret.h"
#include "cli/core/invocation.h"

namespace clawdforge {

// All of standard input. On a terminal it says that it waits for it, and one Ctrl-D ends it.
Asked<std::string> read_prompt(const Screen& screen);
// The prompt that a command was given: its word, or standard input where that is "-" or absent.
Asked<std::string> prompt_of(const Invocation& invocation, std::size_t word);

// The first line of standard input; on a terminal without echo. kExitUsage: it is empty.
Asked<Secret> read_secret(const Screen& screen, std::string_view question);

// False without a terminal, and at the end of its input.
bool is_yes(const Screen& screen, std::string_view question);

}  // namespace clawdforge
