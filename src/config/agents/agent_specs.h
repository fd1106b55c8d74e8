// Which agents there are: the built-in ones and those of the configuration. Pure, but for
// the finder of programs, which is handed in.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/agent.h"

namespace clawdforge {

// The path of a program by its name; none: it is not there.
using ProgramFinder = std::function<std::optional<std::string>(const std::string& name)>;

// A table of the configuration changes a built-in agent of the same name: its command takes
// the place of the built-in one, its variables come to the built-in ones. What
// is built in is found now, once: what is put in front of it in PATH later does not count. What
// is not there keeps its name, and is looked for whenever it is asked for. The demo agent is in
// `own_program`.
std::vector<AgentSpec> agent_specs(const Config& config, const ProgramFinder& find,
                                   const std::string& own_program);

}  // namespace clawdforge
