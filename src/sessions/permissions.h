// Permission questions: what a rule says to them, and how they are told. Pure.
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

// Yes or no, by the narrowest option for it.
Decision choice_of(bool allows, const PermissionRequest& question);

// What the session's mode says; none: somebody has to be asked.
std::optional<Decision> rule_for(PermissionMode mode, const PermissionRequest& question);

// Of a question that is answered already, by the rule of whoever drives the agent.
Decision decided(const PermissionRequest& question);

// A question as callers see it, without the last brace. `expires_at` none: it was decided at
// once.
std::string question_json(std::string_view id, std::int64_t turn_index, std::int64_t asked_at,
                          std::optional<std::int64_t> expires_at,
                          const PermissionRequest& question);

// The data of a `permission_resolved` event. `by` is who decided: app, rule, expiry or cancel.
std::string resolution_json(std::string_view id, const Decision& decision, std::string_view by);

// What the audit keeps of it.
std::string audit_json(std::string_view id, const PermissionRequest& question,
                       const Decision& decision, std::string_view by, PermissionMode mode);

}  // namespace clawdforge
