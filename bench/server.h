// Server is a program that listens on loopback, started for a benchmark: the gateway, or
// what it is compared with. It prints its address in one line when it listens. The
// destructor asks it to end and waits for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace clawdforge {

// Throws, so that on the way out every server is ended.
[[noreturn]] void give_up(const std::string& reason);

class Server {
 public:
  // `environment` in the form NAME=VALUE is all that the program gets. Gives up when no
  // address appears.
  Server(std::vector<std::string> argv, std::vector<std::string> environment);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // The most memory that was ever resident.
  double peak_mib() const;

 private:
  Server() = default;  // with it done, the destructor runs also when the start fails
  void read_address(int output);

  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

// Ready to be called: where it listens and with which token.
struct Gateway {
  // `more` is added to its environment.
  Gateway(const std::string& program, const std::string& claude_bin, const std::string& directory,
          const std::vector<std::string>& more);

  Server server;
  std::string token;
};

struct Standin {
  Standin(const std::string& script, const std::string& claude_bin, const std::string& directory);

  Server server;
  std::string token = "cf_bench";
};

}  // namespace clawdforge
