// ServiceNotice tells the service manager how we are: ready, stopping, alive; and gives it our
// socket to keep. It speaks
// systemd's protocol, which is one datagram for each message to the socket that NOTIFY_SOCKET
// names; without one it says nothing. A message that cannot be sent is lost: the manager's
// own time limits are what decides then. Lives on the io thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace clawdforge {

class ServiceNotice {
 public:
  // What the manager has put into our environment; empty: there is none. Removes it from
  // there, while there is one thread: it is meant for us, and for no child.
  struct Address {
    std::string socket;
    std::string watchdog_usec;
    std::string watchdog_pid;
    std::string stored_max{};  // descriptors that it keeps for us
  };
  static Address take_address();

  explicit ServiceNotice(const Address& address);
  ~ServiceNotice();
  ServiceNotice(const ServiceNotice&) = delete;
  ServiceNotice& operator=(const ServiceNotice&) = delete;

  // How often it wants to hear that we are alive; none: it does not.
  std::optional<std::chrono::microseconds> watchdog_interval() const { return watchdog_; }

  void ready(const std::string& status) const;
  // The manager waits at least so long from now on, whatever its own limit says.
  void stopping(const std::string& status, std::chrono::milliseconds needs) const;
  void alive() const;

  // Whether it keeps a socket of ours while we are away, and hands it to our next life.
  bool stores_sockets() const { return stores_sockets_; }
  void store_socket(int descriptor) const;
  // It keeps the one of an earlier life no longer.
  void forget_socket() const;

 private:
  void send(const std::string& message) const;

  int socket_ = -1;
  bool stores_sockets_ = false;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace clawdforge
