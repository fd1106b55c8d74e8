// Tells the ways apart in which an agent that speaks the Agent Client Protocol fails. Pure.
// The codes are those of agent/failure/api_failure.h, and stable: docs/openapi.yaml lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/acp/acp_message.h"
#include "base/result.h"
#include "model/agent.h"

namespace clawdforge {

// By what the agent itself said. Secrets are masked. Without `now`, in Unix seconds, the
// end of a limit is not known.
Failure failure_of(const AcpError& error, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets);

// False: failure_of() knows nothing of it but that it is an error.
bool is_recognised(const AcpError& error);

// Whether an error to a prompt says that the agent does not have the conversation any more:
// it is not found, or what Claude's adapter drives has died below it.
bool is_conversation_lost(const AcpError& error);

}  // namespace clawdforge
