#include "agent/acp/acp_turn.h"

#include <fmt/format.h>

#include "agent/acp/acp_failure.h"
#include "agent/failure/agent_failure.h"

namespace clawdforge {

TurnEnd turn_end_of(const AcpMessage& answer, bool is_cancelled, const AgentSetup& setup) {
  TurnEnd end;
  if (answer.error && is_cancelled && answer.error->code == kAcpCancelled) {
    end.stop_reason = kStopCancelled;
  } else if (answer.error) {
    end.failure = failure_of(*answer.error, setup.spec, setup.now(), setup.secrets);
    end.has_lost_conversation = is_conversation_lost(*answer.error);
  } else if (answer.result) {
    end.stop_reason = answer.result->stop_reason;
    end.usage = answer.result->usage;
    if (end.stop_reason.empty()) {
      end.failure = agent_failed(
          "agent_nonsense", fmt::format("{} ended its turn without a reason.", setup.spec.name));
    }
  }
  return end;
}

void TurnCost::note(const AcpMessage& message) {
  if (message.cost_usd) told_ = message.cost_usd;
}

std::optional<double> TurnCost::take() {
  if (!told_) return std::nullopt;
  const double told = *told_;
  told_.reset();
  // An agent that has begun to count from zero again tells less than before.
  const double before = told < counted_ ? 0 : counted_;
  counted_ = told;
  return told - before;
}

}  // namespace clawdforge
