// AgentMemory knows what memory the agents of this gateway take, tree by tree, and whether that is
// more than they may take together. It measures every few seconds, and soon after each start, on
// the compute worker's thread. Owned by the daemon; io thread only. Its owner calls stop() before
// it dies, and joins run().
//
// A tree that has not been measured counts as much as others of its agent took: so starts that come
// together are not all let through before the first of them is measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/async/async.h"
#include "base/async/compute_worker.h"
#include "base/async/signal.h"
#include "base/strong_id.h"
#include "base/telemetry/metrics.h"
#include "process/tree/child.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kMemoryLookInterval{5};
// From a start to the next measurement: its program has mostly begun by then.
inline constexpr std::chrono::milliseconds kMemoryLookAfterStart{500};
// Apps that have a series of their own; the others are one.
inline constexpr std::size_t kMemoryAppLabelsMax = 50;

// One tree, for as long as a shared pointer to it lives.
struct TrackedTree {
  ProcessId process;
  AppName app;          // whose work it is; empty: a spare's
  std::string agent;    // its name
  std::string own_dir;  // that of its session or run
  std::uint64_t bytes = 0;
};

class AgentMemory {
 public:
  // All outlives it.
  struct Dependencies {
    IoExecutor executor;
    ComputeWorker& compute;
    Metrics& metrics;
    std::function<std::uint64_t(ProcessId)> measure;  // blocks; on the compute worker's thread
  };

  AgentMemory(Dependencies deps, std::uint64_t bytes_max);
  AgentMemory(const AgentMemory&) = delete;
  AgentMemory& operator=(const AgentMemory&) = delete;

  // A tree has been started.
  std::shared_ptr<TrackedTree> track(TrackedTree tree);

  // Called after each measurement, when a start has made it full, and when a tree has ended.
  void on_change(std::function<void()> told) { told_ = std::move(told); }
  Task<void> run();
  // One measurement.
  Task<void> measure();
  void stop();

  std::uint64_t bytes() const;
  std::uint64_t bytes_max() const { return bytes_max_; }
  // What is over the limit.
  std::uint64_t excess() const;
  // No agent should be started now.
  bool is_full() const { return bytes() >= bytes_max_; }
  // What one more agent of this name will take, as far as that is known.
  std::uint64_t expected(std::string_view agent) const;
  std::uint64_t bytes_of_agent(std::string_view agent) const;
  // Of the session or run with this directory.
  std::uint64_t bytes_of_dir(std::string_view own_dir) const;
  // For /metrics.
  void show();

 private:
  using Trees = std::list<std::weak_ptr<TrackedTree>>;
  template <class Visit>
  void each(Visit visit) const;

  const Dependencies deps_;
  const std::uint64_t bytes_max_;
  mutable Trees trees_;
  std::map<std::string, std::uint64_t, std::less<>> expected_;  // by agent
  std::set<std::string, std::less<>> shown_apps_;
  std::function<void()> told_;
  bool is_stopped_ = false;
  bool is_started_ = false;  // a tree, since the last measurement
  Signal woken_;
};

}  // namespace clawdforge
