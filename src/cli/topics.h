// The topics of `clawdforge help`: what a new user should know before the options of a command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

std::vector<std::string_view> topic_names();
// Empty: there is no such topic.
std::string_view topic_text(std::string_view name);

}  // namespace clawdforge
