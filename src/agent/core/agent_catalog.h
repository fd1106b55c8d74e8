// AgentCatalog is the list of the agents that there are. Made at start, by the daemon; it
// never changes, and outlives all that is started by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/agent.h"

namespace clawdforge {

class AgentCatalog {
 public:
  explicit AgentCatalog(std::vector<AgentSpec> specs);

  // Null: there is none of this name.
  const AgentSpec* find(std::string_view name) const;
  std::vector<std::string> names() const;
  const std::vector<AgentSpec>& specs() const { return specs_; }

 private:
  const std::vector<AgentSpec> specs_;
};

}  // namespace clawdforge
