// How the Claude command line is called: its arguments, and what it gets to read. Pure. What it
// does with them is measured by tests/real.
#pragma once

#include <string>
#include <vector>

#include "agent/core/one_shot_agent.h"

namespace clawdforge {

// The arguments after the program's name. Neither the prompt nor the system prompt is among them,
// ever: every user of the machine can read arguments. The prompt goes to standard input, and
// the system prompt is in a file.
std::vector<std::string> claude_arguments(const OneShotRequest& request, bool owner_settings);

// What the agent reads: the prompt, made such that it is nothing but a prompt, and a list
// of the attachments, if there are any.
std::string prompt_text(const OneShotRequest& request);

}  // namespace clawdforge
