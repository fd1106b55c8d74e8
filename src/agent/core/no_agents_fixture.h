// NoAgents is an AgentStarter for tests that start no agent.
#pragma once

#include "agent/core/agent_starter.h"

namespace clawdforge {

class NoAgents final : public AgentStarter {
 public:
  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder) override { return absent(); }
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder, OneShotRequest) override {
    return absent();
  }

 private:
  static std::unexpected<Failure> absent() {
    return fail(Errc::unavailable, "agent_not_found", "There are no agents here.");
  }
};

}  // namespace clawdforge
