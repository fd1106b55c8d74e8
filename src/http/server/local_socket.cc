#include "http/server/local_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace clawdforge {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr int kLocalBacklogMax = 64;

std::unexpected<Failure> no_socket(const std::string& path, const char* what) {
  return fail(Errc::unavailable, "listen",
              fmt::format("The socket {} cannot be {}: {}.", path, what, std::strerror(errno)));
}

// False: there is something else of this name.
bool remove_old(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return errno == ENOENT;
  return S_ISSOCK(found.st_mode) && ::unlink(path.c_str()) == 0;
}

}  // namespace

Result<Descriptor> listen_on_file(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Errc::invalid, "listen",
                fmt::format("The path {} is longer than the {} bytes that a socket's may have.",
                            path, sizeof address.sun_path - 1));
  }
  path.copy(address.sun_path, path.size());
  if (!remove_old(path)) return no_socket(path, "replaced");
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) return no_socket(path, "made");
  // On Linux the file gets the mode of the socket, so it is never open to others, not even for the
  // moment before a chmod.
  if (::fchmod(made.number(), kOwnerOnly) != 0) return no_socket(path, "made");
  if (::bind(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return no_socket(path, "made");
  }
  if (::listen(made.number(), kLocalBacklogMax) != 0) {
    ::unlink(path.c_str());
    return no_socket(path, "listened on");
  }
  return made;
}

std::optional<LocalPeer> local_peer_of(int socket) {
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return LocalPeer{.pid = found.pid, .uid = found.uid};
}

}  // namespace clawdforge
