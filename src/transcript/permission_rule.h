// What a permission mode says to the questions of agents. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/agent.h"
#include "transcript/permission_request.h"

namespace clawdforge {

struct Decision {
  bool is_allowed = false;
  std::optional<std::string> option_id;  // none: the question has no option for it
};
std::string_view name_of(const Decision& decision);  // allow, deny or cancelled

// Yes or no, by the narrowest option for it.
Decision choice_of(bool allows, const PermissionRequest& question);

// What the mode says; none: a caller has to be asked.
std::optional<Decision> rule_for(PermissionMode mode, const PermissionRequest& question);

// Of a question that is answered already, by a rule of the program that drives the agent (acpx).
Decision decided(const PermissionRequest& question);

}  // namespace clawdforge
