// Policies says what each app may ask for: the strictest of what the gateway's configuration, the
// agent's table and the app's token allow. It also has the owner's MCP servers, which apps ask for
// by name. Made at start; it never changes. Io thread only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/app.h"
#include "model/mcp_server.h"
#include "model/policy.h"

namespace clawdforge {

class Policies {
 public:
  // By agent: only of those whose tables say something.
  using ByAgent = std::map<std::string, Policy, std::less<>>;

  Policies(Policy gateway, ByAgent by_agent, McpServers mcp_servers);

  // What the app may ask of this agent.
  Policy of(const App& app, std::string_view agent) const;
  // What it may ask of an agent whose table says nothing.
  Policy of(const App& app) const;
  const ByAgent& by_agent() const { return by_agent_; }

  // An agent and a model, before any work begins. Errc::forbidden "agent_not_allowed" or
  // "model_not_allowed".
  Result<void> check(const App& app, std::string_view agent, std::string_view model) const;

  // `servers` is the JSON text of a list: each is the name of one of the owner's, or an object as
  // the Agent Client Protocol has them; empty: no servers. Errc::forbidden "mcp_not_allowed".
  Result<void> check_mcp_servers(const Policy& policy, std::string_view servers) const;
  // What the agent is told: the owner's servers stand where their names were. A list that
  // check_mcp_servers() let through has no other names.
  std::string resolved(std::string_view servers) const;
  // The variables and headers of these servers, which agents must not show.
  std::vector<std::string> mcp_secrets(std::string_view servers) const;
  std::vector<std::string> mcp_server_names() const;

 private:
  const Policy gateway_;
  const ByAgent by_agent_;
  const McpServers mcp_servers_;
};

}  // namespace clawdforge
