// `clawdforge session events`: the journal of a session, and with --follow what comes after it.
#pragma once

#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

std::vector<Option> event_options();
Done session_events(Invocation& invocation);

}  // namespace clawdforge
