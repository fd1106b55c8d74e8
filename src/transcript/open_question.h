// A permission that an agent asks for and that an app has to decide, and the app's answer. Plain
// records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "transcript/permission_request.h"

namespace clawdforge {

struct OpenQuestion {
  std::string id;
  std::int64_t turn_index = 0;
  PermissionRequest asked;
  TimePoint asked_at;
  TimePoint expires_at;
};

// What an app says to a question.
struct PermissionChoice {
  std::optional<std::string> option_id;
  std::optional<bool> allows;  // if there is no option_id
};

}  // namespace clawdforge
