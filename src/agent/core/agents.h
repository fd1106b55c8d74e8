// Agents knows which agents there are, and starts them. Owned by the daemon; io thread
// only; outlives every SessionAgent that it started.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/agent_pipe.h"
#include "agent/core/session_agent.h"
#include "base/async.h"
#include "base/clock.h"
#include "model/agent.h"
#include "process/tree/spawner.h"

namespace clawdforge {

class Agents {
 public:
  struct Options {
    std::vector<AgentSpec> specs;
    std::string demo_program;           // our own program, which has the demo agent built in
    std::string acpx_program = "acpx";  // for agents of that protocol
    std::map<std::string, std::string> environment;  // ours; an allow-list picks from it
    bool owner_settings = false;                     // the owner's own Claude settings apply too
    std::chrono::milliseconds start_max{60'000};     // for each step of the start
    const Clock* clock = nullptr;  // to read a limit's end by; null: that is not known
    Metrics* metrics = nullptr;    // to show what agents hold; may be null, else outlives it
  };

  Agents(Spawner& spawner, Options options);

  // Null: there is none of this name.
  const AgentSpec* find(std::string_view name) const;
  std::vector<std::string> names() const;
  // Present is what is on the PATH now. The version is what the agent last called it in
  // open(); empty before that.
  std::vector<AgentListing> list() const;

  // Starts its process, with the conversation still to be opened. Errc::unavailable
  // "agent_not_found" with what to install when its program is not there, "no_resources"
  // when the system refuses another process.
  Result<std::unique_ptr<SessionAgent>> start(const AgentSpec& spec, std::string working_dir,
                                              std::string temp_dir);

 private:
  ChildPlan plan_for(const AgentSpec& spec, const std::string& temp_dir) const;
  bool is_present(const AgentSpec& spec, const ChildPlan& plan) const;

  Spawner& spawner_;
  const Options options_;
  const std::string boot_id_;
  const AgentGauges gauges_;
  std::map<std::string, std::string, std::less<>> versions_;  // by name, as they last said
};

}  // namespace clawdforge
