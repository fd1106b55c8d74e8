// Programs runs the small programs that workspaces need, git and an owner's setup, each as a tree
// of its own with a deadline and a limit on its output. Few run at a time; the others wait. Io
// thread only. Its owner calls stop() and waits for its callers before it dies.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "process/tree/child.h"
#include "process/tree/spawner.h"
#include "workspaces/workspace_records.h"

namespace clawdforge {

inline constexpr std::size_t kProgramsMax = 4;           // at the same time
inline constexpr std::size_t kProgramsWaitingMax = 200;  // over that: 503 "queue_full"

// What a program sees. Git: the given paths, and no home. Empty: git is not jailed.
using GitJail = std::function<JailPlan(const std::vector<VisiblePath>& paths)>;
// A setup: what the agent of its session or run would, with its temporary directory as a home, the
// same limits and the same network.
struct SetupBounds {
  std::optional<JailPlan> jail;  // none: it is not jailed
  TreeLimits limits = {};
  std::map<std::string, std::string> environment = {};  // that it has, too
  std::function<void(Child&)> serve_net = {};           // of a network of its own; empty: none
};
using SetupJail =
    std::function<SetupBounds(const std::vector<std::string>& command, const WorkspaceUser& user,
                              const std::string& repository)>;
struct ProgramJails {
  GitJail git = {};
  SetupJail setup = {};
};

struct ProgramOrder {
  ChildPlan plan;
  std::string input = {};
  std::size_t output_bytes_max = 0;
  bool ends_when_cut = true;  // a program that says more is ended
  std::chrono::seconds time_max{};
  std::function<void(Child&)> serve_net = {};  // called once it was started
};

struct ProgramEnd {
  ExitStatus status = Unknown{};
  std::string output;
  bool is_cut = false;   // it said more
  bool is_late = false;  // it was ended because its time was over
  std::string error_tail;

  bool is_good() const { return status == ExitStatus(Exited{0}) && !is_cut && !is_late; }
};

class Programs {
 public:
  Programs(IoExecutor executor, Spawner& spawner) : executor_(executor), spawner_(spawner) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // However it ends, all that it has started has ended when this returns. Errc::unavailable
  // "queue_full", "no_resources" or "draining".
  Async<ProgramEnd> run(ProgramOrder order);

  // Ends those that run, and refuses others from now on.
  void stop();

 private:
  class Place;
  Async<ProgramEnd> run_now(ProgramOrder order);

  const IoExecutor executor_;
  Spawner& spawner_;
  std::size_t running_ = 0;
  std::size_t waiting_ = 0;
  std::set<Child*> children_;
  bool is_stopped_ = false;
  Signal freed_;
};

}  // namespace clawdforge
