// How a turn of an agent that speaks the Agent Client Protocol ended, and what it cost.
// Pure.
#pragma once

#include <optional>

#include "agent/acp/acp_message.h"
#include "agent/core/agent_setup.h"
#include "agent/core/session_agent.h"

namespace clawdforge {

// By the answer to its prompt; without the cost.
TurnEnd turn_end_of(const AcpMessage& answer, bool is_cancelled, const AgentSetup& setup);

// Agents tell what the whole conversation has cost so far.
class TurnCost {
 public:
  // `so_far` has been counted to earlier turns.
  void begin_at(double so_far) { counted_ = so_far; }
  void note(const AcpMessage& message);
  // Of the turn that ends now; none: nothing was told.
  std::optional<double> take();

 private:
  std::optional<double> told_;  // since the last turn's end
  double counted_ = 0;
};

}  // namespace clawdforge
