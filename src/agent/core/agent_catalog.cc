#include "agent/core/agent_catalog.h"

#include <algorithm>
#include <utility>

namespace clawdforge {

AgentCatalog::AgentCatalog(std::vector<AgentSpec> specs,
                           std::function<bool(const AgentSpec&)> is_too_old)
    : specs_(std::move(specs)), is_too_old_(std::move(is_too_old)) {}

const AgentSpec* AgentCatalog::find(std::string_view name) const {
  const auto found = std::ranges::find(specs_, name, &AgentSpec::name);
  if (found == specs_.end()) return nullptr;
  const bool falls_back = found->fallback && is_too_old_ && is_too_old_(*found);
  return falls_back ? found->fallback.get() : &*found;
}

std::vector<std::string> AgentCatalog::names() const {
  std::vector<std::string> names;
  for (const AgentSpec& spec : specs_) names.push_back(spec.name);
  return names;
}

}  // namespace clawdforge
