// The token of a person at a terminal who has none yet: on the gateway's own machine one is minted
// for the app "this-terminal" and stored, if they agree. Blocks.
#pragma once

#include "cli/core/destination.h"

namespace clawdforge {

// find_destination() with an app's token; `run` and `chat` begin with it.
Asked<Destination> find_app_destination(const Invocation& invocation);

}  // namespace clawdforge
