// Sweeper removes what has had its time: expired uploads, old lines of the audit, and what the
// chores that it is given remove. The ledger's rows decide. Ticks never overlap: a caller that
// asks for one while another runs waits for that, and then gets one of its own, because what it
// wants swept may have expired after the other had looked. Owned by the daemon; io thread only.
// run() ends by stop().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"

namespace clawdforge {

class AuditRows;
class RunRows;
class UploadFiles;
class UploadRows;

struct SweepReport {
  std::int64_t soft_closed = 0;   // sessions
  std::int64_t hard_deleted = 0;  // likewise
  std::int64_t files_deleted = 0;
  std::int64_t audit_rows_deleted = 0;
  std::int64_t failed = 0;  // what could not be removed; the next tick tries again
};

class Sweeper {
 public:
  // Each outlives the sweeper.
  struct Dependencies {
    IoExecutor executor;
    UploadRows& uploads;
    RunRows& runs;
    AuditRows& audit;
    UploadFiles& upload_files;
    const Clock& clock;
    Log& log;
    Metrics& metrics;
  };
  struct Times {
    std::chrono::seconds interval{};                    // between two ticks
    std::optional<std::chrono::seconds> audit_age_max;  // without it the audit is kept for ever
  };

  Sweeper(Dependencies deps, Times times);

  // What a tick does beside the uploads. One that fails does not keep the others from their
  // turn. Before the first tick.
  using Chore = std::function<Async<void>(SweepReport*)>;
  void add(Chore chore);

  // Looks and acts once. Fails when the ledger or the disk does; what was done until then
  // stays done.
  Async<SweepReport> tick();

  // A tick at every interval, until stop(). A tick that runs is finished first.
  Task<void> run();
  void stop();

 private:
  class Turn;

  Async<SweepReport> sweep();
  Async<void> sweep_uploads(SweepReport* report);
  Async<void> sweep_audit(SweepReport* report);
  void report(const Result<SweepReport>& swept);

  const Dependencies deps_;
  const Times times_;
  std::vector<Chore> chores_;
  Timer pause_;  // between two ticks of run()
  Signal idle_;  // a tick has ended
  Counter& sweeps_;
  Counter& files_deleted_;
  Counter& failures_;
  bool is_sweeping_ = false;
  bool is_stopped_ = false;
  bool is_failing_ = false;  // said so in the log already
};

}  // namespace clawdforge
