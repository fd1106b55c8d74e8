// How the Claude command line is called: its arguments, and what it gets to read. Pure. What it
// does with them is measured by tests/real.
#pragma once

#include <string>
#include <vector>

#include "agent/core/agent_starter.h"
#include "agent/core/one_shot_agent.h"

namespace clawdforge {

// The arguments after the program's name. Neither the prompt nor the system prompt is among them,
// ever: every user of the machine can read arguments. The prompt goes to standard input, and
// the system prompt is in a file.
// With `is_spare` the program waits for its prompt as a line of stream-json.
std::vector<std::string> claude_arguments(const OneShotRequest& request, bool owner_settings,
                                          bool is_spare = false);

// What a spare is told first, and its prompt; lines of stream-json with their newline.
std::string spare_greeting();
std::string spare_prompt(std::string_view text);

// What keeps a single prompt within limits, as arguments.
void append_limits(std::vector<std::string>& arguments, const SingleUse& limits);

// What the agent reads: the prompt, made such that it is nothing but a prompt, and a list
// of the attachments, if there are any.
std::string prompt_text(const OneShotRequest& request);

}  // namespace clawdforge
