// ServiceNotice tells the service manager how we are: ready, stopping, alive. It speaks
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

 private:
  void send(const std::string& message) const;

  int socket_ = -1;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace clawdforge
