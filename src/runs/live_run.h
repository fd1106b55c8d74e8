// LiveRun is one run under way, from its admission to the end of its last process. Its task and the
// handler that waits for its answer share it. Io thread only.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_starter.h"
#include "agent/core/one_shot_agent.h"
#include "base/async/ask_gate.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/timer.h"
#include "model/app.h"
#include "quota/ticket.h"
#include "runs/run_request.h"
#include "storage/work/run_dirs.h"
#include "workspaces/direct_turns.h"

namespace clawdforge {

// Why a run has to end before its agent has answered.
enum class RunStop { none, caller_gone, cancelled, timed_out, revoked, shutdown };

// What the caller is told about a run that was stopped before an agent was asked.
std::unexpected<Failure> never_started(RunStop reason);

class LiveRun : public std::enable_shared_from_this<LiveRun> {
 public:
  using Registry = std::list<LiveRun*>;

  // Is in the registry, which outlives it, for as long as it lives.
  LiveRun(IoExecutor executor, Registry& registry, std::shared_ptr<const App> caller,
          RunRequest asked, Ticket admitted);
  ~LiveRun();
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  // Stops it when its time is up.
  void start_deadline();
  // The first reason counts; once the answer is given, none does.
  void stop(RunStop reason);
  RunStop stopped() const { return stop_; }

  void set_answer(Result<RunOutcome> outcome);
  // Returns when there is an answer. Once.
  Async<RunOutcome> answer();
  // Returns when there is one, without taking it.
  Task<void> answered();
  bool is_answered() const { return is_answered_; }

  const std::shared_ptr<const App> app;
  RunRequest request;
  std::optional<Ticket> ticket;   // until its last process has ended
  std::shared_ptr<AskGate> gate;  // null: it passes by itself
  std::vector<Attachment> attachments;
  std::vector<std::string> called{};  // what the app calls them
  RunId run_id;                       // from its beginning on, as the three below
  std::chrono::steady_clock::time_point begun;
  std::unique_ptr<SpareClaim> spare;  // null: there is none for it, or it was started
  std::unique_ptr<OneShotAgent> shot;
  bool may_have_dir = false;
  bool has_workspace = false;     // something may have been made for it
  DirectTurns::Hold line;         // of the owner's directory, while it works in that
  std::function<void()> on_stop;  // it may wait for something else than its answer

 private:
  Registry& registry_;
  const Registry::iterator entry_;
  RunStop stop_ = RunStop::none;
  Timer deadline_;
  Signal answered_;
  bool is_answered_ = false;
  Result<RunOutcome> answer_ = never_started(RunStop::shutdown);
};

}  // namespace clawdforge
