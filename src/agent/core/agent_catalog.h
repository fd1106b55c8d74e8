// AgentCatalog is the list of the agents that there are. Made at start, by the daemon; the list
// never changes, and outlives all that is started by it. Io thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/agent.h"
#include "model/policy.h"

namespace clawdforge {

class AgentCatalog {
 public:
  // `is_too_old`: whether the program of this spec, which has a fallback, is known to be older than
  // it must be. It is asked each time, because programs are replaced while we run.
  explicit AgentCatalog(std::vector<AgentSpec> specs,
                        std::function<bool(const AgentSpec&)> is_too_old = {});

  // Null: there is none of this name. The fallback of one whose program is too old.
  const AgentSpec* find(std::string_view name) const;
  std::vector<std::string> names() const;
  const std::vector<AgentSpec>& specs() const { return specs_; }

 private:
  const std::vector<AgentSpec> specs_;
  const std::function<bool(const AgentSpec&)> is_too_old_;
};

// Errc::invalid "unknown_agent", with those that there are and that the policy allows.
std::unexpected<Failure> unknown_agent(const AgentCatalog& catalog, const Policy& policy);

std::vector<std::string_view> names_of(const std::vector<PermissionMode>& modes);
// Errc::invalid "permission_mode_not_supported": the agent would act as it pleases, whatever it is
// told. `held` are the modes that it can be held to.
std::unexpected<Failure> mode_not_supported(const AgentSpec& spec, PermissionMode mode,
                                            const std::vector<PermissionMode>& held);

}  // namespace clawdforge
