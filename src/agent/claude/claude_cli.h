// How the Claude command line is called: its arguments, and what it gets to read. Pure. What it
// does with them is measured by tests/real.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/core/one_shot_agent.h"

namespace clawdforge {

// A longer system prompt goes through a file: an argument has its limit in the kernel.
inline constexpr std::size_t kSystemArgumentBytesMax = 64 * 1024;

// Whether `system` must go through a file. Also if an argument cannot carry it.
bool needs_file(std::string_view system);

// The arguments after the program's name. The prompt is not among them, ever: it goes to
// standard input, where ps does not show it. `system_file` is the path of a file that
// holds the system prompt, or empty.
std::vector<std::string> claude_arguments(const OneShotRequest& request, bool owner_settings,
                                          const std::string& system_file);

// What the agent reads: the prompt, made such that it is nothing but a prompt, and a list
// of the attachments, if there are any.
std::string prompt_text(const OneShotRequest& request);

}  // namespace clawdforge
