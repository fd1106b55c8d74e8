// Tells from how an agent's process ended whether a program that it needs is not there: most often
// the interpreter of its script, such as node, which is on the PATH of the owner's shell and not on
// that of the gateway's service. Pure.
#pragma once

#include <string>
#include <string_view>

#include "process/tree/exit_status.h"

namespace clawdforge {

// A sentence that says what to do; empty: nothing says that a program is missing. `error_tail` is
// the last of the process's standard error, as it is.
std::string missing_program_hint(const ExitStatus& status, std::string_view error_tail);

}  // namespace clawdforge
