// A permission that an agent asks for and that an app has to decide, and the app's answer. Plain
// records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "transcript/permission_request.h"

namespace clawdforge {

struct OpenQuestion {
  std::string id;
  std::int64_t turn_index = 0;
  PermissionRequest asked;
  TimePoint asked_at;
  TimePoint expires_at;
  // What the agent says of the tool: JSON text of an object. Empty: nothing, or more than is kept.
  std::string tool{};
  bool is_tool_cut = false;  // it says more than is kept
};

// What an app says to a question.
struct PermissionChoice {
  std::optional<std::string> option_id;
  std::optional<bool> allows;   // if there is no option_id
  std::string_view by = "app";  // who says it: the app, or the owner for it; a literal
};

}  // namespace clawdforge
