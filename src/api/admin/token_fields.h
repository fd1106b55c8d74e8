// The settings of an app: read from a request's body, and shown in an answer's.
#pragma once

#include <string>

#include "api/core/json_body.h"
#include "model/app.h"

namespace clawdforge {

// Each field that is given is taken; null takes it back to its default; absent leaves it as it is.
// What is wrong is noted in `fields`. Pure: the same fields change each app in the same way.
void take_settings(Fields& fields, App& app);

// JSON members, each after a comma unless the object has only just begun. What the owner has not
// said is null.
void append_cidrs(std::string& out, const std::vector<Cidr>& cidrs);
void append_limits(std::string& out, const App& app);  // all settings but the policy
void append_policy(std::string& out, const Policy& policy);

}  // namespace clawdforge
