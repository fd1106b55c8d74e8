// JobQueue decides whose jobs are looked for next. It knows of each app only when one of its jobs
// may start, and what it has in hand: the jobs themselves are in the ledger. One run of an app at a
// time waits for its place, so that runs of one app start in the order in which they came; turns
// wait in their sessions, one of each session. Between apps the one with the fewest in hand comes
// first. Io thread only, no I/O.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "model/jobs/job.h"

namespace clawdforge {

// Jobs that are in memory: they run, or wait for a place.
inline constexpr std::size_t kJobsInHandMax = 256;
inline constexpr std::size_t kJobsInHandMaxPerApp = 64;

class JobQueue {
 public:
  // A job of this app may start at this time.
  void note_ready(const AppName& app, TimePoint at);
  // Nothing of the app is begun before this time.
  void pause(const AppName& app, TimePoint until);
  void resume(const AppName& app);

  // The app whose jobs are to be looked for, if any; what was noted of it is forgotten, so what is
  // noted from now on counts.
  std::optional<AppName> next_app(TimePoint now);
  // When next_app() may have one, if nothing is noted until then.
  std::optional<TimePoint> next_time() const;

  bool has_run_at_door(const AppName& app) const;
  bool is_in_hand(const JobId& id) const { return in_hand_.contains(id); }

  void take(const Job& job);
  void begun(const Job& job);
  void put_back(const Job& job);  // or it has ended
  // Nothing of the app waits.
  void forget_idle(const AppName& app);

  std::size_t in_hand() const { return in_hand_.size(); }

 private:
  struct Share {
    std::optional<TimePoint> look_at;
    TimePoint paused_until;
    std::size_t in_hand = 0;
    std::optional<JobId> at_door;  // a run that waits for its place
    std::uint64_t served = 0;
  };

  // When there may be a job to take in hand; none: not as things are.
  static std::optional<TimePoint> look_time(const Share& share) {
    if (!share.look_at || share.in_hand >= kJobsInHandMaxPerApp) return std::nullopt;
    return std::max(*share.look_at, share.paused_until);
  }

  std::map<AppName, Share> shares_;
  std::set<JobId> in_hand_;
  std::uint64_t served_ = 0;
};

}  // namespace clawdforge
