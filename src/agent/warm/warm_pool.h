// WarmPool is an AgentStarter that keeps a few agents ready. A start that one of them fits takes
// it, and saves what the agent's program needs to begin; every other start is a plain one. Owned by
// the daemon; io thread only. Its owner calls stop() and waits for it before it dies; it outlives
// every agent that it gave out.
//
// A spare fits a start if the plan that the start would have in the spare's directory is the very
// plan that the spare was started by. That directory becomes the session's or the run's own, so a
// new one takes its id from the spare: claim_session(), claim_run().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_starter.h"
#include "agent/warm/spare.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/ids.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"

namespace clawdforge {

// An older spare is replaced.
inline constexpr std::chrono::minutes kSpareAgeMax{15};
// Kinds of starts that are told apart; the one that was used longest ago makes room.
inline constexpr std::size_t kSpareKindsMax = 16;
// Spares that are started at the same time.
inline constexpr std::size_t kSpareStartsMax = 2;

struct SpareDir {
  std::string own;  // with these three in it
  std::string work;
  std::string temp;
  std::string home;
};

class WarmPool final : public AgentStarter {
 public:
  // Each outlives the pool.
  struct Dependencies {
    IoExecutor executor;
    AgentStarter& starter;
    const AgentCatalog& catalog;
    IdSource& ids;
    Log& log;
    Metrics& metrics;
    // All that is fixed when a process is started by this order.
    std::function<Result<std::string>(const StartOrder&, const SpareKind&)> start_text;
    // What the app's policy says of its processes of this agent.
    std::function<std::string(const AppName&, const std::string& agent)> profile_of;
    std::function<Async<SpareDir>(bool is_run, std::string id,
                                  std::map<std::string, std::string> temp_files)>
        make_dir;
    std::function<void(bool is_run, std::string id)> remove_dir;
    // How many processes may live beside those of sessions, or of runs.
    std::function<std::size_t(bool is_run)> places_left;
    // Whether the agent's login is good now; without it a spare is of no use. Empty: it always is.
    std::function<bool(const std::string& agent)> has_login = {};
    std::function<Demand::Time()> now = [] { return std::chrono::steady_clock::now(); };
  };
  struct Options {
    std::size_t auto_max = 2;  // spares of an agent whose number is not configured
    PermissionMode permission_mode = PermissionMode::approve_reads;  // of sessions that name none
  };

  WarmPool(Dependencies deps, Options options);
  ~WarmPool() override;
  WarmPool(const WarmPool&) = delete;
  WarmPool& operator=(const WarmPool&) = delete;

  std::unique_ptr<SpareClaim> claim_session(StartOrder order) override;
  std::unique_ptr<SpareClaim> claim_run(StartOrder order, OneShotRequest request) override;
  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder order) override;
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder order,
                                                       OneShotRequest request) override;
  bool holds_read_only(const AppName& app, const std::string& agent) const override;

  // Keeps the pool as it should be, until close().
  Task<void> run();
  // One look: ends what is not good or not wanted any more, and starts what is missing.
  void look();
  // Memory is short: spares have to go until so many bytes are free, the oldest first. Gives how
  // many bytes those have that go; `bytes_of` says it of the directory of one.
  std::uint64_t give_way(std::uint64_t bytes,
                         const std::function<std::uint64_t(const std::string&)>& bytes_of);
  // Ends the spares, and starts no more.
  void close();
  // Waits until nothing of them is left.
  Task<void> stop();

  // All that wait, or are on their way.
  std::size_t spares() const { return spares_.size() + starting_; }
  // Ready ones, of this agent.
  std::size_t spares_of(std::string_view agent) const;

 private:
  class Claim;
  using Spares = std::list<Spare>;

  bool is_kept(const AgentSpec& spec) const;
  SpareKind& kind_of(const StartOrder& order, const OneShotRequest* request);
  std::unique_ptr<SpareClaim> claim(const StartOrder& order, const OneShotRequest* request);
  std::optional<Spare> take_claimed(const StartOrder& order);
  void forget_oldest_kind();
  Spares::iterator fitting(const SpareKind& kind, const StartOrder& order);
  bool is_same_start(const Spare& spare) const;
  void decide();
  void decide_for(const AgentSpec& spec, std::map<bool, std::size_t>& left);
  std::size_t ready(const SpareKind& kind) const;
  void discard_bad();
  void discard_unwanted();
  void start_missing();
  StartOrder order_for(const SpareKind& kind, const AgentSpec& spec, const SpareDir& dir) const;
  Task<void> start_spare(SpareKind* kind);
  Task<std::string> make_spare(SpareKind* kind, std::string id);
  void discard(Spares::iterator spare, const char* why);
  Result<void> start_process(Spare& spare);
  static Task<std::optional<Failure>> warm_up(Spare* spare);
  Task<void> end(Spare spare, bool removes_dir);
  void release(const std::string& id, bool is_good);
  void count(const char* outcome);
  void show();

  const Dependencies deps_;
  const Options options_;
  std::list<SpareKind> kinds_;
  Spares spares_;
  std::list<Spare*> warming_;  // whose processes run, and are not ready
  std::size_t starting_ = 0;
  bool is_closed_ = false;
  Demand::Time refill_at_ = Demand::Time::max();
  Signal woken_;
  TaskGroup tasks_;
};

}  // namespace clawdforge
