#include "daemon/process/handed_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "daemon/process/environment.h"

namespace clawdforge {
namespace {

constexpr int kFirstHanded = 3;        // by the protocol
constexpr int kHandedSocketsMax = 16;  // more than any unit of ours names

std::unexpected<Failure> unusable(std::string why) {
  return fail(Errc::invalid, "listen", std::move(why));
}

int number_in(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// The name at this place in a list with colons between.
std::string_view name_at(std::string_view names, int place) {
  for (; place > 0; --place) {
    const std::size_t colon = names.find(':');
    if (colon == names.npos) return {};
    names.remove_prefix(colon + 1);
  }
  return names.substr(0, names.find(':'));
}

Result<HandedSocket> look_at(Descriptor socket, bool is_stored) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int number = socket.number();
  const bool listens = option_of(number, SO_TYPE) == SOCK_STREAM &&
                       option_of(number, SO_ACCEPTCONN) == 1 &&
                       ::getsockname(number, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  std::array<char, INET6_ADDRSTRLEN> text{};
  HandedSocket handed{.socket = std::move(socket), .host = {}, .is_stored = is_stored};
  if (listens && address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    handed.port = ntohs(v4.sin_port);
  } else if (listens && address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    handed.port = ntohs(v6.sin6_port);
  } else {
    return unusable(
        "The service manager hands over a socket that is not a TCP socket that listens: "
        "ListenStream in the socket unit must be an address and a port.");
  }
  handed.host = text.data();
  return handed;
}

}  // namespace

Result<std::optional<HandedSocket>> take_handed_socket() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  const std::string names = take_variable("LISTEN_FDNAMES");
  if (number_in(pid) != ::getpid()) return std::optional<HandedSocket>();
  const int sockets = number_in(count);
  if (sockets < 0 || sockets > kHandedSocketsMax) {
    return unusable(fmt::format("LISTEN_FDS={} is not a number of sockets.", count));
  }
  std::vector<Descriptor> stored;
  std::vector<Descriptor> given;
  for (int i = 0; i < sockets; ++i) {
    const int number = kFirstHanded + i;
    if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) {
      return unusable(
          fmt::format("LISTEN_FDS={}, but there is no descriptor {}.", sockets, number));
    }
    (name_at(names, i) == kStoredSocketName ? stored : given).emplace_back(number);
  }
  if (given.size() > 1) {
    return unusable(
        fmt::format("The service manager hands over {} sockets; clawdforge takes one: "
                    "name one ListenStream in the socket unit.",
                    given.size()));
  }
  if (given.empty() && stored.empty()) return std::optional<HandedSocket>();
  const bool is_stored = given.empty();
  auto handed = look_at(std::move(is_stored ? stored.front() : given.front()), is_stored);
  if (!handed) return std::unexpected(std::move(handed.error()));
  return std::optional(std::move(*handed));
}

}  // namespace clawdforge
