// What other commands of this program ask of the gateway of this machine. Blocks.
#pragma once

#include <string>

#include "base/result.h"
#include "client/local_gateway.h"

namespace clawdforge {

// The answer to its admin.
Result<std::string> get_as_admin(const FindLocalGateway& find_local, const std::string& data_dir,
                                 const std::string& target);
// The answer of an agent to one real question.
Result<std::string> ask_agent_here(const FindLocalGateway& find_local, const std::string& data_dir,
                                   const std::string& agent);

}  // namespace clawdforge
