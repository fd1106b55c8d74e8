// The file of the prompts that were typed: one a line, readable by its owner alone. Several chats
// may append to it at the same time. Blocks on files; what cannot be read or written is left out.
#pragma once

#include <string>
#include <vector>

namespace clawdforge {

// The oldest first, at most kHistoryEntriesMax of them. A file that has grown much longer is
// written again with these alone.
std::vector<std::string> load_history(const std::string& file);

void append_to_history(const std::string& file, const std::string& prompt);

}  // namespace clawdforge
