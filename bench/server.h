// Server is a program that listens on loopback, started for a benchmark: the gateway, or
// what it is compared with. The destructor asks it to end and waits for it.
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
  // `environment` in the form NAME=VALUE is all that the program gets. It prints its address
  // in one line when it listens; gives up when none appears.
  Server(std::vector<std::string> argv, std::vector<std::string> environment);
  // One that says nothing and was told the port; gives up when the port does not answer.
  Server(std::vector<std::string> argv, std::vector<std::string> environment, std::uint16_t port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  // The most memory that was ever resident.
  double peak_mib() const;

 private:
  Server() = default;  // with it done, the destructor runs also when the start fails
  void start(std::vector<std::string>& argv, std::vector<std::string>& environment, int output);
  void read_address(int output);

  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

// A port on which no program listens.
std::uint16_t free_port();

// Ready to be called: where it listens and with which token.
struct Gateway {
  // `more` is added to its environment.
  Gateway(const std::string& program, const std::string& claude_bin, const std::string& directory,
          const std::vector<std::string>& more);
  // Started again where one has run already: with the token of then.
  Gateway(const std::string& program, const std::string& claude_bin, const std::string& directory,
          const std::vector<std::string>& more, std::string known_token);

  Server server;
  std::string token;
};

struct Standin {
  Standin(const std::string& script, const std::string& claude_bin, const std::string& directory);

  Server server;
  std::string token = "cf_bench";
};

}  // namespace clawdforge
