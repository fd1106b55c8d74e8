// Inside http/: the Unix socket that a server may listen on beside its TCP port, and who is at the
// other end of a connection.
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "http/server/server.h"

namespace clawdforge {

// Makes the socket's file, with mode 0600 from its first moment on, in place of one that an earlier
// process has left, and listens. Nothing but a socket is replaced. Errc::invalid when the path is
// longer than the kernel takes, Errc::unavailable when the file cannot be made.
Result<Descriptor> listen_on_file(const std::string& path);

// The process that has connected, as the kernel saw it then. None: it cannot be told.
std::optional<LocalPeer> local_peer_of(int socket);

}  // namespace clawdforge
