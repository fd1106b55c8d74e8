// Turns a loaded configuration into the lines that a person reads.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace clawdforge {

// `sources` has the keys that were set; all others have their default.
std::vector<Config::Line> config_lines(const Config& config,
                                       const std::map<std::string_view, std::string>& sources,
                                       const std::string& tables_source);

}  // namespace clawdforge
