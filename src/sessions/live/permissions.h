// What the audit keeps of permission questions. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/agent.h"
#include "transcript/permission_rule.h"

namespace clawdforge {

// What the audit keeps of it. `by` is who decided: app, rule, expiry or cancel.
std::string audit_json(std::string_view id, const PermissionRequest& question,
                       const Decision& decision, std::string_view by, PermissionMode mode);

}  // namespace clawdforge
