// ProcessStarter is the AgentStarter that starts real programs, each in a process tree of its
// own. It knows no protocol: who speaks with the process is made by a function that the daemon
// has registered for the protocol. Owned by the daemon; io thread only; outlives every agent that
// it started.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_environment.h"
#include "agent/core/agent_setup.h"
#include "agent/core/agent_starter.h"
#include "base/telemetry/log.h"
#include "model/policy.h"

namespace clawdforge {

class AgentMemory;
class JailPlanner;
class Spawner;
struct ChildPlan;

// How the agents of sessions of one protocol are made.
struct SessionProtocol {
  std::function<std::unique_ptr<SessionAgent>(std::unique_ptr<Child>, AgentSetup)> make;
  // What follows the agent's command; null: nothing does.
  std::function<std::vector<std::string>(const StartOrder&)> arguments;
  // For a protocol that is spoken through a driver: the process that is started in place of the
  // agent's own command, and the program that must be there. Empty: the agent's own.
  std::vector<std::string> host;
  std::string driver;
};

// How a single prompt is put to the agents of one protocol.
struct OneShotMaker {
  // What follows the agent's one-shot command.
  std::function<std::vector<std::string>(const StartOrder&, const OneShotRequest&)> arguments;
  std::function<std::unique_ptr<OneShotAgent>(std::unique_ptr<Child>, AgentSetup, OneShotRequest)>
      make;
};

struct AgentProtocols {
  std::map<AgentProtocol, SessionProtocol> sessions;
  std::map<OneShotProtocol, OneShotMaker> one_shots;
};

class ProcessStarter final : public AgentStarter {
 public:
  // What is there before it, and outlives it.
  struct Dependencies {
    const AgentCatalog& catalog;
    Spawner& spawner;
    const Clock& clock;
    Metrics& metrics;
    Log& log;
    ComputeWorker* compute = nullptr;    // as in AgentSetup
    ByteBudget* memory = nullptr;        // likewise
    const JailPlanner* jails = nullptr;  // none: no agent is jailed
    // What the app may ask of the agent; empty: nothing is said of either.
    std::function<Policy(const AppName& app, std::string_view agent)> policy_of = {};
    AgentMemory* agent_memory = nullptr;  // counts what they take; null: it is not counted
    // What an agent is shown of its login; empty: all have the gateway's home.
    std::function<LoginView(const AgentSpec&, bool is_jailed)> login_of = {};
    // Lets a tree with a network of its own reach these targets; empty: it reaches none.
    std::function<void(Child& child, const StartOrder& order, std::vector<std::string> targets)>
        serve_net = {};
  };
  struct Options {
    AgentProtocols protocols;
    Environment environment;                      // ours; an allow-list picks from it
    std::chrono::milliseconds start_max{60'000};  // for each step of the start of a session
  };

  ProcessStarter(Dependencies deps, Options options);

  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder order) override;
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder order,
                                                       OneShotRequest request) override;

  // The process that start_session() would start now.
  Result<ChildPlan> plan_session(const StartOrder& order) const;
  // The same of start_one_shot().
  Result<ChildPlan> plan_one_shot(const StartOrder& order, const OneShotRequest& request) const;
  // What the app may ask of the agent.
  Policy policy_of(const AppName& app, const std::string& agent) const;

  bool holds_read_only(const AppName& app, const std::string& agent) const override;

  // All agents of the catalogue. Present is what is on the PATH now. The version is what the
  // agent last called it in open(); empty before that.
  std::vector<AgentListing> list() const;

 private:
  const SessionProtocol& protocol_of(const AgentSpec& spec) const;
  bool is_present(const AgentSpec& spec) const;
  Result<ChildPlan> plan_for(const StartOrder& order, std::vector<std::string> argv,
                             const ModeSwitches& switches) const;
  LoginView view_of(const StartOrder& order) const;
  Result<void> add_jail(const StartOrder& order, const LoginView& view, ChildPlan& plan) const;
  Result<std::unique_ptr<Child>> spawn(const StartOrder& order, const ChildPlan& plan) const;
  AgentSetup setup_for(StartOrder order, const ChildPlan& plan, const Child& child);

  Dependencies deps_;
  const Options options_;
  const std::string boot_id_;
  const AgentGauges gauges_;
  std::map<std::string, AgentLore, std::less<>> lore_;  // by name, as they last said
};

}  // namespace clawdforge
