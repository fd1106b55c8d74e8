#include "agent/core/agent_catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::unexpected<Failure> unknown_agent(const AgentCatalog& catalog, const Policy& policy) {
  auto names = catalog.names();
  std::erase_if(names, [&](const std::string& name) { return !allows_agent(policy, name); });
  auto error = fail(Errc::invalid, "unknown_agent",
                    fmt::format("There is no such agent; there are: {}.", fmt::join(names, ", ")));
  error.error().fields = {{"agent", fmt::format("must be one of {}", fmt::join(names, ", "))}};
  return error;
}

std::vector<std::string_view> names_of(const std::vector<PermissionMode>& modes) {
  std::vector<std::string_view> names;
  for (const PermissionMode mode : modes) names.push_back(name_of(mode));
  return names;
}

std::unexpected<Failure> mode_not_supported(const AgentSpec& spec, PermissionMode mode,
                                            const std::vector<PermissionMode>& held) {
  std::string sentence = fmt::format(
      "The agent {} cannot be held to the permission mode {}, only to {}: ask for one of these",
      spec.name, name_of(mode), fmt::join(names_of(held), ", "));
  // acpx answers by itself, whatever the table says.
  if (spec.protocol == AgentProtocol::acpx && mode == PermissionMode::ask) {
    sentence += '.';
  } else {
    sentence += fmt::format(
        ", or, if the agent asks before it uses a tool, let the owner name {} in permission_modes "
        "of its table [agents.{}].",
        name_of(mode), spec.name);
  }
  return fail(Errc::invalid, "permission_mode_not_supported", std::move(sentence));
}

}  // namespace clawdforge
