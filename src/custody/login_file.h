// What the file of a login says of itself: whether there are tokens, and until when they are good.
// The tokens themselves are looked at only for whether they are empty, and leave nothing in memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace clawdforge {

// A login is far smaller; tokens of MCP servers may stand beside it.
inline constexpr std::size_t kLoginFileBytesMax = 256 * 1024;

struct LoginFile {
  bool has_access = false;                                  // else there is no login
  bool has_refresh = false;                                 // it can be renewed
  std::optional<TimePoint> expires_at = std::nullopt;       // none: it does not say
  std::optional<TimePoint> sign_in_ends_at = std::nullopt;  // from then on a person has to log in

  bool operator==(const LoginFile&) const = default;
};

// Blocks: for the disk's thread. What is not there, or cannot be read, is not a login.
LoginFile look_at_login(const std::string& path);

// The same of what the file holds.
LoginFile login_in(std::string_view json);

}  // namespace clawdforge
