// Finds programs as the launcher does: a name with a slash is a path, any other is looked
// up in PATH.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// Its path; none: there is no such program now.
std::optional<std::string> find_program(const std::string& name, std::string_view path);

}  // namespace clawdforge
