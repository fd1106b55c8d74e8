// What callers of a session are told when it cannot do what they ask.
#pragma once

#include "base/refusals.h"

namespace clawdforge {

inline std::unexpected<Failure> shutting_down() {
  return fail_for_now(Errc::unavailable, "interrupted", "The gateway is shutting down.",
                      std::chrono::seconds(5));
}

inline std::unexpected<Failure> session_not_found() {
  return fail(Errc::not_found, "session_not_found", "There is no such session.");
}

inline std::unexpected<Failure> session_closed() {
  return fail(Errc::gone, "session_closed", "The session is closed.");
}

}  // namespace clawdforge
