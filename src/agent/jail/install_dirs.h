// What a program needs to see of its own installation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// The files and directories of a command: of its program, of the interpreter of a script, and of
// the files that its arguments name by absolute paths. Of what npm has installed it is the
// outermost node_modules, else the directory of the file; only the file itself where that directory
// holds much else, such as a home. A name without a slash is looked up in `search_path`.
std::vector<std::string> install_dirs(const std::vector<std::string>& command,
                                      std::string_view search_path, const std::string& home);

}  // namespace clawdforge
