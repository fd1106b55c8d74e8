// How Claude's command line fails without a result; what it says itself is for
// agent/failure/api_failure.h. Pure. The codes are stable: docs/openapi.yaml lists them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/agent.h"
#include "process/tree/exit_status.h"

namespace clawdforge {

struct SilentEnd {
  ExitStatus status;
  bool has_output = false;
  bool is_too_large = false;
  std::string_view error_tail;
};
Failure failure_of(const AgentSpec& spec, const SilentEnd& end);

}  // namespace clawdforge
