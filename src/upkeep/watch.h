// Watch keeps memory true to the ledger: it looks a few times a second whether another
// program has changed the rows, brings uses of tokens to the ledger now and then, and
// tries a small write while the ledger refuses, so that a healed one is noticed.
// Io thread only; its task ends when its group is cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/async/async.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "ledger/ledger.h"
#include "quota/apps.h"

namespace clawdforge {

class Watch {
 public:
  // Each outlives the watch.
  struct Dependencies {
    IoExecutor executor;
    Ledger& ledger;
    Apps& apps;
    const Clock& clock;
    Log& log;
  };

  explicit Watch(Dependencies deps);

  // First look, before the gateway is ready.
  Async<void> begin();
  // Until stop(), or for ever.
  Task<void> run();
  void stop();
  // Called after another program's changes have been read.
  void on_reload(std::function<void()> listener) { on_reload_ = std::move(listener); }

  // Sessions that are open by the ledger's rows, as of the last look.
  std::int64_t open_sessions() const { return open_sessions_; }

 private:
  Async<void> look();
  Async<void> count_sessions();
  void report(const Result<void>& looked);

  const Dependencies deps_;
  Timer timer_;
  std::function<void()> on_reload_;
  std::int64_t mark_ = 0;
  std::int64_t open_sessions_ = 0;
  bool is_stopped_ = false;
  bool is_failing_ = false;   // said so in the log already
  bool is_doubtful_ = false;  // memory may not be true to the ledger
};

}  // namespace clawdforge
