// The demo agent as an agent of the Agent Client Protocol, version 1: conversations that
// it remembers, also in a later process, and turns that show what src/agent/demo/demo_words.h
// lists. It shares no code with our client of that protocol, so that the two test each other.
#pragma once

#include <string>

namespace clawdforge {

// Speaks on these descriptors until the input ends. Conversations are kept in files in
// `temp_dir`. Blocks; gives the exit code. One turn at a time.
int demo_acp(int input, int output, const std::string& temp_dir);

}  // namespace clawdforge
