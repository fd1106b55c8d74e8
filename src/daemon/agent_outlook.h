// AgentOutlook tells which agents there are, where, of which version, and whether their owner seems
// to be logged in: for GET /agents and for the lines at the gateway's start. Owned by the Gateway;
// io thread only.
#pragma once

#include <string>
#include <vector>

#include "agent/inventory/inventory.h"
#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "model/program.h"
#include "storage/disk/disk.h"

namespace clawdforge {

class AgentOutlook {
 public:
  // A program that is asked for its version now and then.
  struct Probed {
    std::string program;
    const ProgramFinding& finding;
  };

  AgentOutlook(InventorySources sources, Disk& disk, std::vector<Probed> probed)
      : sources_(std::move(sources)), disk_(disk), probed_(std::move(probed)) {}

  // Looks now, on the disk's thread. Empty: the disk does not answer.
  Task<std::vector<AgentReport>> look();

 private:
  const InventorySources sources_;
  Disk& disk_;
  const std::vector<Probed> probed_;
};

// A line for each agent, and what to do for the first answer: as text for the person who has
// started the gateway in a terminal.
std::string start_text(const std::vector<AgentReport>& agents, const std::string& own_command);
// The same as lines of the log.
void log_agents(const std::vector<AgentReport>& agents, Log& log);

// What a person types to call this program: its name if PATH leads there, else its path.
std::string own_command(const std::string& own_program, std::string_view path);

}  // namespace clawdforge
