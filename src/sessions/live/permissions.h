// Permission questions: what a rule says to them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/core/session_agent.h"
#include "model/agent.h"

namespace clawdforge {

struct Decision {
  bool is_allowed = false;
  std::optional<std::string> option_id;  // none: the question has no option for it
};
std::string_view name_of(const Decision& decision);  // allow, deny or cancelled

// Yes or no, by the narrowest option for it.
Decision choice_of(bool allows, const PermissionRequest& question);

// What the session's mode says; none: the caller has to be asked.
std::optional<Decision> rule_for(PermissionMode mode, const PermissionRequest& question);

// Of a question that is answered already, by a rule of the program that drives the agent (acpx).
Decision decided(const PermissionRequest& question);

// What the audit keeps of it. `by` is who decided: app, rule, expiry or cancel.
std::string audit_json(std::string_view id, const PermissionRequest& question,
                       const Decision& decision, std::string_view by, PermissionMode mode);

}  // namespace clawdforge
