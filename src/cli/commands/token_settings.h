// The options of `clawdforge token mint` and `token set` that say what an app may do. One table has
// them all; each becomes a field of the request's body.
#pragma once

#include <boost/json/fwd.hpp>
#include <vector>

#include "cli/core/arguments.h"

namespace clawdforge {

std::vector<Option> setting_options();
// The same, and --reset; for a token that there is already.
std::vector<Option> change_options();

// Adds the fields that were given to the body. kExitUsage: --reset names one that there is not.
Asked<void> add_setting_fields(const Arguments& arguments, boost::json::object& body);

}  // namespace clawdforge
