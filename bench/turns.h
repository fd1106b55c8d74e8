// The ways to get one answer of an agent's command line, to be measured in turns: each
// call of once() is one answer, and gives the microseconds it took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "figures.h"

namespace clawdforge {

struct Turn {
  virtual ~Turn() = default;
  virtual double once() = 0;
};

// The program as it is: posix_spawn, the prompt, its result line. It is also waited for;
// the time until then goes to `to_end`.
std::unique_ptr<Turn> bare_turn(std::string program, Figures* to_end);

// The same through the gateway's own Spawner, and so behind the launcher. Null when the
// kernel does not allow namespaces.
std::unique_ptr<Turn> launcher_turn(std::string program, std::string directory,
                                    bool with_namespace);

// POST /run over a connection of its own.
std::unique_ptr<Turn> request_turn(std::uint16_t port, const std::string& token);

// One write of 4 KiB over a block that is there, and its fdatasync: the least that a
// commit can cost.
std::unique_ptr<Turn> disk_turn(const std::string& directory);

}  // namespace clawdforge
