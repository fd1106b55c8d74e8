// How the Claude command line is called: its arguments, its environment, what it gets to
// read. Pure. What it does with them is measured by tests/real.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/question.h"

namespace clawdforge {

using Environment = std::map<std::string, std::string>;

// A longer system prompt goes through a file: an argument has its limit in the kernel.
inline constexpr std::size_t kSystemArgumentBytesMax = 64 * 1024;

// Whether `system` must go through a file. Also if an argument cannot carry it.
bool needs_file(std::string_view system);

// The arguments behind the program's name. The prompt is not among them, ever: it goes to
// standard input, where ps does not show it. `system_file` is the path of a file that
// holds the system prompt, or empty.
std::vector<std::string> claude_arguments(const OneShotRequest& question, bool owner_settings,
                                          const std::string& system_file);

// What the agent reads: the prompt, made such that it is nothing but a prompt, and a list
// of the attachments, if there are any.
std::string prompt_text(const OneShotRequest& question);

// Of our environment, what any agent needs, and the names in `more`. Nothing that begins
// with CLAWDFORGE_ passes, whoever asks for it.
Environment plain_environment(const Environment& ours, const std::vector<std::string>& more);

// The same with what reaches the model's API, and the switches that make the command line
// fit for a server. `set` beats all but the temp directory.
Environment claude_environment(const Environment& ours, const std::vector<std::string>& more,
                               const Environment& set, const std::string& temp_dir);

// The values in an environment that must not be shown.
std::vector<std::string> secrets_in(const Environment& environment);

}  // namespace clawdforge
