// Who may use the gateway's Unix socket: its owner, and no agent.
#pragma once

#include "http/server/server.h"

namespace clawdforge {

// Whether the process runs as the gateway's user, or as root, and was not started by the gateway.
// Agents run as the same user; the gateway is the subreaper of all that they start, so it stays
// among their ancestors whatever they do.
bool may_administer(const LocalPeer& peer);

}  // namespace clawdforge
