// Quota answers one question for all that apps want to do: may this app start this work now? It
// asks the agent's breaker, the app's own limits and the pool of places, in this order, and gives a
// Ticket. It also counts what apps hold of the gateway's connections and streams. Io thread only;
// it outlives its tickets and shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/telemetry/metrics.h"
#include "model/app.h"
#include "model/session.h"
#include "quota/agent_breakers.h"
#include "quota/app_tally.h"
#include "quota/budgets/ask_metrics.h"
#include "quota/budgets/ask_rates.h"
#include "quota/pool.h"
#include "quota/ticket.h"

namespace clawdforge {

class LoginGate;

// Starts of agents that wait for a place.
inline constexpr std::size_t kAgentQueueMax = 1'024;

enum class WorkKind {
  run,            // one prompt to a process of its own
  turn,           // one prompt to the agent of a session
  session_start,  // a new session
};

// What an app wants to do, as far as admission needs to know it.
struct Work {
  WorkKind kind = WorkKind::run;
  std::string agent;
  std::string model;  // empty: the agent's default
};

class Quota {
 public:
  // What holds for apps whose tokens do not say otherwise, and for all of them together.
  struct Options {
    std::size_t runs_max = 0;  // that run at the same time
    std::size_t queued_runs_max = 0;
    std::optional<std::int64_t> runs_max_per_app = std::nullopt;
    std::size_t agents_max = 0;  // of sessions, that live at the same time
    std::size_t queued_agents_max = kAgentQueueMax;
    SessionLimits sessions;
    std::int64_t connections_max_per_app = 0;
    std::int64_t event_streams_max_per_app = 0;
    Budgets* budgets = nullptr;   // outlives the quota; null: there are none
    LoginGate* logins = nullptr;  // likewise
  };

  Quota(Options options, Metrics& metrics);
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // The work is admitted; Ticket::ready() tells when it may start. A run gets a place in the queue
  // or is refused, in this order: the agent's own failure while its breaker is shut;
  // Errc::over_quota "rate_limited", "too_many_runs"; Errc::unavailable "queue_full". A turn is
  // refused only by the breaker and its app's rate here; by a budget each ask is in
  // Ticket::ready(). New sessions are not refused.
  Result<Ticket> admit(const App& app, Work work);

  // A place for the agent of one of the app's sessions: when it is started first, and when a turn
  // wakes it. Errc::unavailable "queue_full". Its Ticket::ready() waits for the agent's login.
  Result<Ticket> admit_agent(AppName app, std::string agent = {});
  std::size_t agents_waiting() const { return agent_places_.waiting(); }
  // Places that no agent of a session has; and of runs.
  std::size_t agents_left() const { return options_.agents_max - agent_places_.running(); }
  std::size_t runs_left() const { return options_.runs_max - run_places_.running(); }

  // While it is held, neither runs nor agents of sessions are started: Pool::hold().
  void hold_starts(bool is_held) {
    run_places_.hold(is_held);
    agent_places_.hold(is_held);
  }
  bool are_starts_held() const { return agent_places_.is_held(); }

  // How many sessions may be open, for the transaction that adds one of this app.
  SessionLimits session_limits(const App& app) const;

  // For a connection that shows the app's token: held until it shows another one, or ends.
  // Errc::over_quota "too_many_app_connections".
  Result<AppShare> admit_connection(const App& app);
  // For a stream of events, until it ends. Errc::over_quota "too_many_streams".
  Result<AppShare> admit_event_stream(const App& app);

 private:
  Result<Ticket> admit_run(const App& app, const Work& work);
  void note_weight(const App& app);
  double weight_of(const AppName& app) const;
  Result<Ticket> admit_ask(const App& app, const Work& work);
  void tell_limits(Failure& refusal, const App& app) const;

  const Options options_;
  Pool run_places_;
  Pool agent_places_;
  AppTally runs_;
  AppTally connections_;
  AppTally event_streams_;
  AgentBreakers breakers_;
  AskRates rates_;
  AskMetrics metrics_;
  std::map<AppName, double> weights_;  // of apps that have one
};

}  // namespace clawdforge
