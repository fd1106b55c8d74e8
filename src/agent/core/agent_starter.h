// AgentStarter starts agents, for sessions and for single prompts. The one seam between those
// who need an agent and how its process comes to be: ProcessStarter starts real ones, tests have
// their own. Io thread only; it outlives every agent that it started.
#pragma once

#include <memory>
#include <string>

#include "agent/core/one_shot_agent.h"
#include "agent/core/session_agent.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "model/agent.h"
#include "model/workspace.h"

namespace clawdforge {

// Which agent is started, for whom and where.
struct StartOrder {
  AgentSpec spec;
  AppName app;              // whose work it is
  std::string working_dir;  // absolute, there
  std::string temp_dir;     // likewise
  std::string own_dir;      // with both in it: all that the agent sees of the data directory
  PermissionMode permission_mode = PermissionMode::deny_all;
  std::string home_dir = {};  // below own_dir; empty: the gateway's own home
  // Those that it will be told by us; masked in what is shown of its words.
  std::vector<std::string> secrets = {};
  // For an agent that is told at its start which conversation it is for: the agent's own id of it,
  // and whether it is there already. A new one has a UUID of ours.
  std::string conversation_id = {};
  bool loads_conversation = false;
  std::vector<VisiblePath> visible = {};  // its workspace; what else it sees does not depend on it
};

class AgentStarter {
 public:
  virtual ~AgentStarter() = default;

  // The agent of a session, with its conversation still to be opened. Errc::unavailable
  // "agent_not_found" with what to install when its program is not there, "no_resources" when
  // the system refuses another process, "jail_unavailable" when it does not give the jail that the
  // owner demands.
  virtual Result<std::unique_ptr<SessionAgent>> start_session(StartOrder order) = 0;

  // An agent that answers `request` and ends. Errc::unavailable when the system refuses another
  // process. That the program is not there shows in the answer.
  virtual Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder order,
                                                               OneShotRequest request) = 0;

  // Whether an agent of this app is kept from writing what is only shown to it
  // (StartOrder::visible).
  virtual bool holds_read_only(const AppName& app, const std::string& agent) const;
};

inline bool AgentStarter::holds_read_only(const AppName& /*app*/,
                                          const std::string& /*agent*/) const {
  return false;
}

}  // namespace clawdforge
