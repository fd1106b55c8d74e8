#include "daemon/agent_protocols.h"

#include <memory>
#include <utility>

#include "agent/acp/acp_agent.h"
#include "agent/acpx/acpx_agent.h"
#include "agent/claude/claude_one_shot.h"

namespace clawdforge {

AgentProtocols agent_protocols(const std::string& own_program, const std::string& acpx_program) {
  AgentProtocols protocols;
  protocols.sessions[AgentProtocol::acp] = {.make =
                                                [](std::unique_ptr<Child> child, AgentSetup setup) {
                                                  return std::make_unique<AcpAgent>(
                                                      std::move(child), std::move(setup));
                                                },
                                            .host = {},
                                            .driver = {}};
  protocols.sessions[AgentProtocol::acpx] = {
      .make =
          [acpx_program](std::unique_ptr<Child> host, AgentSetup setup) {
            return std::make_unique<AcpxAgent>(std::move(host), std::move(setup), acpx_program);
          },
      .host = {own_program, "agent-host"},
      .driver = acpx_program};
  protocols.one_shots[OneShotProtocol::claude_print] = {
      .arguments = claude_one_shot_arguments,
      .make = [](std::unique_ptr<Child> child, AgentSetup setup, const OneShotRequest& request) {
        return std::make_unique<ClaudeOneShot>(std::move(child), std::move(setup), request);
      }};
  return protocols;
}

}  // namespace clawdforge
