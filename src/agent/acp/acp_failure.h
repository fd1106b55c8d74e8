// Tells the ways apart in which an agent that speaks the Agent Client Protocol fails. Pure.
// The codes are those of cli_failure.h, and stable: docs/openapi.yaml lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/acp/acp_message.h"
#include "agent/core/question.h"
#include "model/agent.h"
#include "process/tree/child.h"

namespace clawdforge {

// By what the agent itself said. Secrets are masked. Without `now`, in Unix seconds, the
// end of a limit is not known.
Failure failure_of(const AcpError& error, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets);

// Its process has ended; none: we have ended it.
Failure failure_of_end(const AgentSpec& spec, const std::optional<ExitStatus>& status);

// Whether an error to a prompt says that the agent does not have the conversation any more:
// it is not found, or what Claude's adapter drives has died below it.
bool is_conversation_lost(const AcpError& error);

Failure not_found(const AgentSpec& spec);

// `model` is not what the agent knows; `known` may be empty.
Failure unknown_model(const AgentSpec& spec, const std::string& model,
                      const std::vector<std::string>& known);

}  // namespace clawdforge
