#include "daemon/agent_protocols.h"

#include <memory>
#include <utility>

#include "agent/acp/acp_agent.h"
#include "agent/acpx/acpx_agent.h"
#include "agent/claude/claude_one_shot.h"
#include "agent/claude_stream/claude_stream_agent.h"
#include "agent/claude_stream/stream_cli.h"

namespace clawdforge {

AgentProtocols agent_protocols(const std::string& own_program, const std::string& acpx_program) {
  AgentProtocols protocols;
  protocols.sessions[AgentProtocol::acp] = {.make =
                                                [](std::unique_ptr<Child> child, AgentSetup setup) {
                                                  return std::make_unique<AcpAgent>(
                                                      std::move(child), std::move(setup));
                                                },
                                            .arguments = {},
                                            .host = {},
                                            .driver = {}};
  protocols.sessions[AgentProtocol::acpx] = {
      .make =
          [acpx_program](std::unique_ptr<Child> host, AgentSetup setup) {
            return std::make_unique<AcpxAgent>(std::move(host), std::move(setup), acpx_program);
          },
      .arguments = {},
      .host = {own_program, "agent-host"},
      .driver = acpx_program};
  protocols.sessions[AgentProtocol::claude] = {
      .make =
          [](std::unique_ptr<Child> child, AgentSetup setup) {
            return std::make_unique<ClaudeStreamAgent>(std::move(child), std::move(setup));
          },
      .arguments = claude_stream_arguments,
      .host = {},
      .driver = {}};
  protocols.one_shots[OneShotProtocol::claude_print] = {
      .arguments = claude_one_shot_arguments,
      .make = [](std::unique_ptr<Child> child, AgentSetup setup, const OneShotRequest& request) {
        return std::make_unique<ClaudeOneShot>(std::move(child), std::move(setup), request);
      }};
  return protocols;
}

}  // namespace clawdforge
