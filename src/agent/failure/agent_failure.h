// How the process of an agent failed, whatever was spoken with it. Pure. The codes are stable:
// docs/openapi.yaml lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/agent.h"
#include "model/run.h"
#include "process/tree/exit_status.h"

namespace clawdforge {

// Errc::agent_failed.
Failure agent_failed(std::string_view code, std::string message);

// The program of `agent` was not started, for the reason `error`, an errno: "agent_missing",
// "agent_not_started", or "no_resources".
Failure failure_to_start(const std::string& agent, int error);

// The agent's tree was ended because it used more than it may: "agent_memory", "agent_processes".
Failure failure_over_limit(const std::string& agent, OverLimit over);

// The process of a session's agent has ended; none: we have ended it. `error_tail` is the last of
// its standard error: what it says of a missing program becomes part of the sentence.
Failure failure_of_end(const AgentSpec& spec, const std::optional<ExitStatus>& status,
                       std::string_view error_tail);

// A run calls it "agent_missing" when its agent's program is not there; the sentence is the same.
Failure for_run(Failure failure);

// Of an agent that is not logged in: what its owner has to do, in place of the agent's own words.
Failure with_login_hint(Failure failure, const AgentSpec& spec);

// "agent_not_found", with what to install.
Failure not_found(const AgentSpec& spec);

// A system prompt cannot take the place of this agent's own: "system_mode_not_supported".
Failure system_mode_not_supported(const AgentSpec& spec);

// `model` is not what the agent knows; `known` may be empty.
Failure unknown_model(const AgentSpec& spec, const std::string& model,
                      const std::vector<std::string>& known);

}  // namespace clawdforge
