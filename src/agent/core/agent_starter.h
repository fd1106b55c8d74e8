// AgentStarter starts agents, for sessions and for single prompts. The one seam between those
// who need an agent and how its process comes to be: ProcessStarter starts real ones, tests have
// their own. Io thread only; it outlives every agent that it started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/one_shot_agent.h"
#include "agent/core/session_agent.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "model/agent.h"
#include "model/workspace.h"

namespace clawdforge {

// What an agent is started with that answers one prompt and is not asked again.
struct SingleUse {
  std::optional<double> budget_usd{};  // what it may spend, for agents that can be told
  std::optional<ToolChoice> tools{};   // none: those that it has by itself
  std::optional<int> max_turns{};      // how often it may ask its model

  bool operator==(const SingleUse&) const = default;
};

// Which agent is started, for whom and where.
struct StartOrder {
  AgentSpec spec;
  AppName app;              // whose work it is
  std::string working_dir;  // absolute, there
  std::string temp_dir;     // likewise
  std::string own_dir;      // with both in it: all that the agent sees of the data directory
  PermissionMode permission_mode = PermissionMode::deny_all;
  // Below own_dir, for an agent in a jail that has no need of the gateway's own home; empty: it has
  // that one.
  std::string home_dir = {};
  // Those that it will be told by us; masked in what is shown of its words.
  std::vector<std::string> secrets = {};
  // For an agent that is told at its start which conversation it is for: the agent's own id of it,
  // and whether it is there already. A new one has a UUID of ours.
  std::string conversation_id = {};
  bool loads_conversation = false;
  std::vector<VisiblePath> visible = {};  // its workspace; what else it sees does not depend on it
  bool is_spare = false;                  // it is started ahead; `app` only says by whose policy
  std::optional<SingleUse> single = {};   // none: its conversation goes on, and may be loaded again
};

// The right to an agent that was started ahead, in a directory of its own. What takes it has its
// id: that of a new session. Io thread only; the AgentStarter outlives it.
class SpareClaim {
 public:
  // Ends the agent, unless a start has taken it.
  virtual ~SpareClaim() = default;

  virtual const std::string& id() const = 0;
  // It was not needed, and nothing has been done in its name: another may have it.
  virtual void give_back() = 0;
};

class AgentStarter {
 public:
  virtual ~AgentStarter() = default;

  // For a new session without a workspace, a system prompt and MCP servers: an agent that was
  // started ahead and fits the order, whose directories are not known yet. start_session() for the
  // directory with the claim's id gives it. Null: there is none.
  virtual std::unique_ptr<SpareClaim> claim_session(StartOrder order);

  // Likewise for a run without a workspace, a system prompt and a budget in dollars: `request` has
  // its model and its effort. start_one_shot() for the directory with the claim's id gives it.
  virtual std::unique_ptr<SpareClaim> claim_run(StartOrder order, OneShotRequest request);

  // The agent of a session, with its conversation still to be opened. Errc::unavailable
  // "agent_not_found" with what to install when its program is not there, "no_resources" when
  // the system refuses another process, "jail_unavailable" when it does not give the jail that the
  // owner demands. Errc::invalid "jail_needed" when nothing would hold it to a path of
  // StartOrder::visible.
  virtual Result<std::unique_ptr<SessionAgent>> start_session(StartOrder order) = 0;

  // An agent that answers `request` and ends. Errc::unavailable when the system refuses another
  // process. That the program is not there shows in the answer.
  virtual Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder order,
                                                               OneShotRequest request) = 0;

  // Whether an agent of this app is kept from writing what is only shown to it
  // (StartOrder::visible).
  virtual bool holds_read_only(const AppName& app, const std::string& agent) const;
};

inline std::unique_ptr<SpareClaim> AgentStarter::claim_session(StartOrder /*order*/) {
  return nullptr;
}

inline std::unique_ptr<SpareClaim> AgentStarter::claim_run(StartOrder /*order*/,
                                                           OneShotRequest /*request*/) {
  return nullptr;
}

inline bool AgentStarter::holds_read_only(const AppName& /*app*/,
                                          const std::string& /*agent*/) const {
  return false;
}

}  // namespace clawdforge
