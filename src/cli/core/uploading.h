// Brings a file of the caller to the gateway, on the way of a command. Blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/core/ask.h"

namespace clawdforge {

// The gateway's answer, with the file's token in it. kExitUsage: the file cannot be read.
Asked<GatewayAnswer> upload_file(const Destination& to, const std::string& path,
                                 std::optional<std::int64_t> ttl_secs = std::nullopt);

// The tokens of all these: what begins with ff_ and is not a file is one already, the rest is
// brought.
Asked<boost::json::array> bring_files(const Destination& to, const std::vector<std::string>& files);

}  // namespace clawdforge
