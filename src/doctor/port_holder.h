// Which process listens on a TCP port of this machine, as far as this user may see.
#pragma once

#include <cstdint>
#include <string>

namespace clawdforge {

// "nginx (pid 4711)"; empty: none is seen.
std::string holder_of_port(std::uint16_t port);

}  // namespace clawdforge
