// A socket that listens and that the service manager hands over at our start: of a socket unit, or
// one of an earlier life of ours, which the manager has kept. Connections that come while the
// gateway restarts wait in its backlog. The protocol is systemd's: LISTEN_FDS descriptors from 3
// on, named by LISTEN_FDNAMES, for the process LISTEN_PID.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"

namespace clawdforge {

// What a socket is called that ServiceNotice::store_socket() has given away.
inline constexpr std::string_view kStoredSocketName = "clawdforge-listen";

struct HandedSocket {
  Descriptor socket;
  std::string host;  // an IP address, without brackets
  std::uint16_t port = 0;
  bool is_stored = false;  // an earlier life of ours has made it
};

// Takes it out of our environment, while there is one thread: it is for us, and for no child. None:
// there is none for this process. A socket of a socket unit goes before one that is stored.
// Errc::invalid: there are several, or it is not a TCP socket that listens.
Result<std::optional<HandedSocket>> take_handed_socket();

}  // namespace clawdforge
