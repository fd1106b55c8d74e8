// Gives a string's memory back. Assigning an empty string keeps the buffer, which for a
// prompt or an agent's line may be megabytes.
#pragma once

#include <string>

namespace clawdforge {

inline void free_memory(std::string& bytes) { std::string().swap(bytes); }

}  // namespace clawdforge
