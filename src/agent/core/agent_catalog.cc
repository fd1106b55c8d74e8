#include "agent/core/agent_catalog.h"

#include <algorithm>
#include <utility>

namespace clawdforge {

AgentCatalog::AgentCatalog(std::vector<AgentSpec> specs) : specs_(std::move(specs)) {}

const AgentSpec* AgentCatalog::find(std::string_view name) const {
  const auto found = std::ranges::find(specs_, name, &AgentSpec::name);
  return found == specs_.end() ? nullptr : &*found;
}

std::vector<std::string> AgentCatalog::names() const {
  std::vector<std::string> names;
  for (const AgentSpec& spec : specs_) names.push_back(spec.name);
  return names;
}

}  // namespace clawdforge
