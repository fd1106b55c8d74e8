// What is fixed when a process is started, as one text: its whole plan, and which programs and
// logins lie in the files that it reads at its start. Two starts with the same text give the same
// process. The text holds what the environment holds, secrets too: it is compared, and never shown.
#pragma once

#include <string>

#include "agent/core/agent_starter.h"
#include "process/launch/child_plan.h"

namespace clawdforge {

// Looks at some files. Also after a program was replaced under the same name, and after another
// login, the text is another one.
std::string start_text(const ChildPlan& plan, const AgentSpec& spec);

}  // namespace clawdforge
