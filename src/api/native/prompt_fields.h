// The fields that a run and a turn, or a run and a session, have in common. What is wrong
// is noted in the fields.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/core/json_body.h"
#include "model/agent.h"

namespace clawdforge {

std::string prompt_of(Fields& fields);              // required
std::vector<std::string> files_of(Fields& fields);  // tokens
std::chrono::seconds timeout_of(Fields& fields, std::chrono::seconds otherwise,
                                std::chrono::seconds max);
std::string system_of(Fields& fields);  // empty: none
std::string effort_of(Fields& fields);  // empty: none
std::optional<PermissionMode> permission_mode_of(Fields& fields);

}  // namespace clawdforge
