// `clawdforge agent login NAME`: becomes the login of the agent's own program, with the home and as
// the user of the gateway. The program is unmodified, and what it stores is its own: nothing of it
// is read or copied here.
#pragma once

#include <string>
#include <vector>

#include "doctor/doctor.h"

namespace clawdforge {

// `arguments`: NAME, and flags of `serve`. Returns only if it did not become that program; gives
// the exit code.
int agent_login(std::vector<std::string> arguments, const DoctorLinks& links);

}  // namespace clawdforge
