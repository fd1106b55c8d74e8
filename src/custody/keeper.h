// Keeper starts the agent's own program to renew its login: one process at a time, the only one
// that may write to the login's directory. Owned by Custody; io thread only; the Spawner outlives
// it.
#pragma once

#include <chrono>
#include <string>

#include "base/async/async.h"
#include "base/async/timer.h"
#include "custody/login_states.h"
#include "process/tree/spawner.h"

namespace clawdforge {

// Then it is asked to end. It waits for an answer of its maker for no longer than this.
inline constexpr std::chrono::seconds kKeeperTimeMax{120};
// While it saves what it has renewed, it is not killed for so long.
inline constexpr std::chrono::seconds kKeeperBusyMax{90};
inline constexpr std::size_t kKeeperWordBytesMax = 16 * 1024;

class Keeper {
 public:
  Keeper(IoExecutor executor, Spawner& spawner)
      : executor_(executor), deadline_(executor), spawner_(spawner) {}

  // Runs it to its end. A system that refuses a process is a word that says nothing.
  Task<KeeperWord> run(ChildPlan plan);

 private:
  Task<void> end_in_time();
  Task<std::string> output();

  IoExecutor executor_;
  Timer deadline_;
  Spawner& spawner_;
  Child* child_ = nullptr;  // while it runs
};

}  // namespace clawdforge
