// The built-in demo agent: no login, no model, the same answer to the same prompt. With
// -p it is a one-shot command line that speaks like Claude's; with --acp it holds
// conversations over the Agent Client Protocol (src/agent/demo/demo_acp.h).
#pragma once

#include <string>
#include <vector>

namespace clawdforge {

// The arguments after `clawdforge demo-agent`. Blocks; gives the exit code.
int demo_agent(const std::vector<std::string>& arguments);

}  // namespace clawdforge
