// Runs does what POST /run asks: one prompt, one answer. A run belongs to Runs, not to the
// connection that asked for it: whatever becomes of its caller, it is settled in the
// ledger, its process tree ends, its directory goes and its slot is given back. The caller
// is answered as soon as the result is settled, before the process has ended. Io thread
// only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/one_shot.h"
#include "base/async.h"
#include "base/hang_up.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/task_group.h"
#include "ledger/rows/ledger.h"
#include "quota/agent_breaker.h"
#include "quota/pool.h"
#include "storage/work/run_dirs.h"
#include "uploads/uploads.h"

namespace clawdforge {

struct RunRequest {
  std::string agent;
  std::string prompt;
  std::string model;
  std::string system;
  SystemMode system_mode = SystemMode::append;
  std::string effort;
  std::vector<std::string> files;  // tokens
  std::chrono::seconds timeout{};
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
};

struct RunOutcome {
  std::string run_id;              // empty: refused at the breaker, no run was made
  std::optional<Failure> failure;  // none: it went well
  std::string result;              // JSON text
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::string error_tail;
  std::chrono::milliseconds duration{};
};

class Runs {
 public:
  struct Dependencies {
    IoExecutor executor;
    Ledger& ledger;
    OneShots& one_shots;
    Uploads& uploads;
    RunDirs& run_dirs;
    const Clock& clock;
    IdSource& ids;
    Log& log;
    Metrics& metrics;
    std::string instance_id;
  };
  struct Options {
    Pool::Options pool;
    std::optional<std::int64_t> runs_max_per_app;
  };

  Runs(Dependencies surroundings, Options options);
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // An outcome once an agent was asked, or refused at its door; it is settled in the
  // ledger by then. An error if no agent was asked: Errc::not_found "file_not_found",
  // Errc::over_quota "too_many_runs", Errc::unavailable "queue_full", "queue_timeout",
  // "interrupted" or "ledger_unavailable". `hang_up` cancels the run.
  Async<RunOutcome> execute(std::shared_ptr<const App> app, RunRequest request, HangUp* hang_up);

  // Ended runs whose rows do not say so yet.
  std::size_t unsettled() const { return unsettled_; }

  // Interrupts all runs and waits until nothing of them is left.
  Task<void> stop();

 private:
  class Live;

  Task<void> work(std::shared_ptr<Live> live);
  Task<void> ask(std::shared_ptr<Live> live);
  Task<void> try_to_ask(std::shared_ptr<Live> live);
  Async<void> begin(std::shared_ptr<Live> live);
  Task<void> settle(std::shared_ptr<Live> live, OneShotAnswer answer);
  // Tries again what the ledger did not take when the run ended.
  void settle_again(RunEnd end);
  Task<void> settle_later(RunEnd end);

  Dependencies deps_;
  const Options options_;
  Pool pool_;
  std::map<std::string, AgentBreaker> breakers_;  // by agent
  std::list<Live*> live_;
  std::size_t unsettled_ = 0;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
