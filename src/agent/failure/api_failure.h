// What an agent's words about a failure mean: of its model's API, of its login, or its own.
// Pure. The sentences are Claude's; other agents' that do not match are told as they are. The
// codes are stable: docs/openapi.yaml lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace clawdforge {

// A longer wait is not believed, and told as unknown.
inline constexpr std::chrono::seconds kLimitWaitMax = std::chrono::days(31);

// What the agent says; what it does not say is empty.
struct FailureReport {
  std::string text;               // in its own words
  std::optional<int> api_status;  // the HTTP status of the model's API
  std::string terminal_reason;    // this and all below: as Claude's command line puts it
  std::string api_error;
  std::string api_error_type;
};

// Secrets are masked. Without `now`, in Unix seconds, the end of a limit is not known.
Failure failure_of(const FailureReport& report, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets);

// False: the agent has failed in a way of which failure_of() knows nothing: "agent_error".
bool is_recognised(const FailureReport& report);

}  // namespace clawdforge
