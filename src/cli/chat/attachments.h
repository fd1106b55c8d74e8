// `@path` in a prompt: which files it names, and how a path that has been begun goes on. Looks at
// the file system; reads no file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

inline constexpr std::size_t kAttachmentsMax = 32;         // of a turn; the gateway takes no more
inline constexpr std::size_t kCompletionEntriesMax = 200;  // of a directory that are offered

// The words of a prompt that begin with @ and name a regular file, in their order and each once;
// `@"a b"` has a path with blanks. Others are text.
std::vector<std::string> attached_paths(std::string_view prompt);

// What `begun` can go on to, as whole paths; directories end with a slash.
std::vector<std::string> path_completions(const std::string& begun);

// The longest beginning that all have.
std::string common_beginning(const std::vector<std::string>& texts);

}  // namespace clawdforge
