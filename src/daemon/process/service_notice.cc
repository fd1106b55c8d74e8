#include "daemon/process/service_notice.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "daemon/process/environment.h"
#include "daemon/process/handed_socket.h"

namespace clawdforge {

namespace {

// -1: there is no service manager to tell. A name that begins with @ is not in the file system.
int connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_abstract = name.starts_with('@');
  if (name.size() < 2 || name.size() >= sizeof address.sun_path) return -1;
  if (!is_abstract && !name.starts_with('/')) return -1;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (is_abstract) address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const int opened = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (opened < 0) return -1;
  if (::connect(opened, reinterpret_cast<const sockaddr*>(&address), size) == 0) return opened;
  ::close(opened);
  return -1;
}

std::optional<std::int64_t> positive_in(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

ServiceNotice::Address ServiceNotice::take_address() {
  return {.socket = take_variable("NOTIFY_SOCKET"),
          .watchdog_usec = take_variable("WATCHDOG_USEC"),
          .watchdog_pid = take_variable("WATCHDOG_PID"),
          .stored_max = take_variable("FDSTORE")};
}

ServiceNotice::ServiceNotice(const Address& address) : socket_(connect_to(address.socket)) {
  if (socket_ < 0) return;
  stores_sockets_ = positive_in(address.stored_max).has_value();
  // A watchdog that waits for another process is none of ours.
  const bool is_ours =
      address.watchdog_pid.empty() || positive_in(address.watchdog_pid) == ::getpid();
  if (const auto limit = positive_in(address.watchdog_usec); limit && is_ours) {
    watchdog_ = std::chrono::microseconds(std::max<std::int64_t>(*limit / 3, 1'000));
  }
}

ServiceNotice::~ServiceNotice() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceNotice::ready(const std::string& status) const {
  send(fmt::format("READY=1\nSTATUS={}\n", status));
}

void ServiceNotice::stopping(const std::string& status, std::chrono::milliseconds needs) const {
  const auto micros = std::chrono::microseconds(needs).count();
  send(fmt::format("STOPPING=1\nSTATUS={}\nEXTEND_TIMEOUT_USEC={}\n", status, micros));
}

// One datagram with the message and the descriptor.
void ServiceNotice::store_socket(int descriptor) const {
  std::string message = fmt::format("FDSTORE=1\nFDNAME={}\n", kStoredSocketName);
  iovec part{message.data(), message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  ::sendmsg(socket_, &header, MSG_NOSIGNAL);
}

void ServiceNotice::forget_socket() const {
  send(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", kStoredSocketName));
}

void ServiceNotice::alive() const { send("WATCHDOG=1\n"); }

void ServiceNotice::send(const std::string& message) const {
  if (socket_ >= 0) ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
}

}  // namespace clawdforge
