// Spawner starts children, each behind a launcher, and reaps the launchers. Owned by the
// daemon, io thread only; it outlives every Child. Spawning takes about a tenth of a
// millisecond, whatever the size of our own process. SIGPIPE must be ignored in it: a
// child may close its input at any time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "process/launch/child_plan.h"
#include "process/tree/child.h"
#include "process/tree/exit_status.h"
#include "process/tree/pid_namespace.h"

namespace clawdforge {

// For a launcher to end its tree, beside the grace that it gives. One that takes longer has been
// stopped, and is killed.
inline constexpr std::chrono::seconds kLauncherEndMax{5};
// For what a killed launcher leaves. Then the log says so, and the end of the next tree is
// reason to try again.
inline constexpr std::chrono::seconds kOrphansEndMax{10};

class Spawner {
 public:
  struct Options {
    PidNamespace pid_namespace = PidNamespace::automatic;
    std::chrono::milliseconds kill_grace{2000};  // between TERM and KILL
    std::size_t tail_bytes_max = 8 * 1024;       // of standard error
    HiddenDir hidden;
    // Tried at start, the strongest first. None: children whose plan has a jail get none.
    JailMeans jail_max = JailMeans::none;
    // The soft limit on descriptors that children get; none: ours.
    std::optional<std::uint64_t> descriptors_soft;
    // Makes this process a subreaper, so that what a killed launcher leaves is ended too. For a
    // process whose children are all started by one Spawner: what else it starts, this would kill.
    bool adopts_orphans = false;
    // Whether trees with limits get control groups, where the system allows it. This process may be
    // moved into one of its own for that.
    bool uses_cgroups = false;
  };

  // Blocks for some milliseconds: it makes the launcher's file and tries whether the
  // kernel allows namespaces. Errc::unavailable with a sentence for the operator when
  // the launcher does not start, or namespaces are `on` and not allowed.
  static Result<std::unique_ptr<Spawner>> make(IoExecutor executor, Options options, Log& log);
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Errc::unavailable "no_resources" when the system refuses another process, pipe or
  // descriptor, "draining" after stop(). Errc::too_large "arguments_too_large", Errc::invalid
  // "zero_byte". A program that is not there shows as NotStarted in Child::exit().
  Result<std::unique_ptr<Child>> spawn(const ChildPlan& plan);

  // Is called for each tree that is ended because it is over a limit, with its plan's owner.
  void on_over_limit(std::function<void(const std::string& owner, OverLimit over)> told);
  // Is called for each program that was not started although it may be there: with the step of the
  // launcher that failed.
  void on_failed_step(std::function<void(std::string_view step)> told);

  bool uses_namespaces() const;
  // By what the trees whose plans want it are jailed.
  JailMeans jail_means() const;
  // Why not by something stronger; empty: there is nothing stronger.
  const std::string& jail_obstacle() const;
  // By what trees whose plans have limits are held to them, and why not by something better.
  LimitMeans limit_means() const;
  bool limits_processor() const;
  const std::string& limit_obstacle() const;
  std::size_t alive() const;  // trees not yet gone

  // Lets go of every tree and waits until all are gone.
  Task<void> stop();

 private:
  class Works;

  explicit Spawner(std::unique_ptr<Works> works);

  std::unique_ptr<Works> works_;
};

}  // namespace clawdforge
