// AppRemovals ends what is left of apps whose tokens are gone, however they went: by the API, or
// because another program has deleted their rows. Their sessions are closed and their uploads
// expire. Their runs end at once, by Runs. Owned by the daemon; io thread only.
#pragma once

#include <set>
#include <string>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "base/telemetry/log.h"

namespace clawdforge {

class AppRows;
class Sessions;

class AppRemovals {
 public:
  // Each outlives it.
  struct Dependencies {
    AppRows& rows;
    Sessions& sessions;
    const Clock& clock;
    Log& log;
  };

  explicit AppRemovals(Dependencies deps) : deps_(deps) {}

  // The token of this app is gone.
  void note(AppName app) { apps_.insert(std::move(app)); }
  bool has_any() const { return !apps_.empty(); }

  // Returns when nothing of the apps that were noted lives. Those that the ledger could not be
  // asked about stay noted, for the next call.
  Task<void> follow();

 private:
  const Dependencies deps_;
  std::set<AppName> apps_;
};

}  // namespace clawdforge
