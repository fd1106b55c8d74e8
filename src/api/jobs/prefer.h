// The header Prefer (RFC 7240), as far as jobs go by it. Pure.
#pragma once

#include <chrono>
#include <optional>

#include "http/message/request.h"

namespace clawdforge {

// The longest that a caller can wait for a job's end.
inline constexpr std::chrono::seconds kJobWaitMax{60};

bool prefers_async(const Request& request);
// At most kJobWaitMax. None: the caller does not wait, or what it says is not a number.
std::optional<std::chrono::seconds> preferred_wait(const Request& request);

}  // namespace clawdforge
