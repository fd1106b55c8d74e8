// The programs from npm that drive agents as the gateway's sessions do. bench/run puts them
// below one directory; where one is not there, the benchmark says so and goes on without it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server.h"
#include "turns.h"

namespace clawdforge {

// acpx: a command line for each turn, and a process of its own that lives on between turns.
class Acpx {
 public:
  struct Taken {
    double to_stop = 0;  // until the turn's last line, in microseconds
    double cpu = 0;      // of the command line alone, its end included
    std::size_t lines = 0;
  };

  // Null, and a line on stderr, if it is not below `peers`.
  static std::unique_ptr<Acpx> in(const std::string& peers, const std::string& agent,
                                  const std::string& directory);
  // A program that is acpx with the Node that it needs, written into `directory`. Empty, and
  // a line on stderr, if it is not below `peers`.
  static std::string program_in(const std::string& peers, const std::string& directory);
  // Closes the first session, which ends the process that lives on.
  ~Acpx();

  // Makes a session; until it is there, in microseconds. prompt() is for the first one.
  double open();
  // Returns when the command line has ended: it goes on for a second after the last line.
  Taken prompt(std::string_view text);
  // Of the process that lives on.
  pid_t owner();

 private:
  Acpx(std::string node, std::string script, std::string agent, std::string directory);
  std::vector<std::string> command(const std::vector<std::string>& words) const;
  std::vector<std::string> environment() const;

  const std::string node_;
  const std::string script_;
  const std::string agent_;
  const std::string directory_;
  int opened_ = 0;
};

// @sandbox-agent/cli: a server; each conversation has its own process of the agent.
class SandboxAgent {
 public:
  // Null, and a line on stderr, if it is not below `peers`.
  static std::unique_ptr<SandboxAgent> in(const std::string& peers, const std::string& agent,
                                          const std::string& directory);

  const Server& server() const { return server_; }
  // Starts an agent and opens a conversation; once() is a turn, until its answer. What the
  // agent has said would go to the readers of its stream, of which there are none here.
  std::unique_ptr<Turn> turn();

 private:
  SandboxAgent(const std::string& program, const std::string& directory, std::uint16_t port);

  Server server_;
  int turns_ = 0;
};

}  // namespace clawdforge
