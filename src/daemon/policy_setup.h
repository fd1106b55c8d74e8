// What apps may ask for, from the configuration. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "config/config.h"
#include "hooks/webhooks.h"
#include "quota/apps.h"
#include "quota/budgets/budgets.h"
#include "quota/policies.h"

namespace clawdforge {

// `environment` is ours: the owner's MCP servers get values from it by name. A variable that is
// not set is left out.
Policies policies_of(const Config& config, const std::map<std::string, std::string>& environment);

// What an app may ask of an agent. Also of an app that has been removed: what it began ends soon,
// and is jailed until then. Both outlive the function.
std::function<Policy(const AppName& app, std::string_view agent)> policy_finder(
    const Apps& apps, const Policies& policies);

// The budgets of all apps together, and the least that an ask reserves.
Budgets::Options budget_options(const Config& config);

// How long webhooks are tried, and how often.
Webhooks::Options webhook_options(const Config& config);

}  // namespace clawdforge
