// The sweeper's chore for sessions: closes those that were not used for long, deletes those
// that were closed long ago, trims their journals, and ends what lives for rows that another
// program has closed or removed. Owned by the daemon; io thread only.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/async/async.h"
#include "base/clock.h"
#include "ledger/sessions/journal_rows.h"
#include "ledger/sessions/session_rows.h"
#include "sessions/sessions.h"
#include "storage/work/session_dirs.h"
#include "upkeep/sweeper.h"

namespace clawdforge {

class SessionSweep {
 public:
  // Each outlives the sweep.
  struct Dependencies {
    SessionRows& rows;
    JournalRows& journal;
    Sessions& sessions;
    SessionDirs& dirs;
    const Clock& clock;
  };
  struct Limits {
    std::chrono::seconds ttl{};       // from its last turn, or its creation, to its close
    std::chrono::seconds hard_ttl{};  // from its close to its deletion
    std::chrono::seconds journal_age_max{};
    std::int64_t journal_bytes_max = 0;  // of one session
  };

  SessionSweep(Dependencies deps, Limits limits) : deps_(deps), limits_(limits) {}

  Async<void> sweep(SweepReport* report);
  // A sweep under way ends soon.
  void stop() { is_stopped_ = true; }

 private:
  Async<void> close_idle(SweepReport* report);
  Async<void> delete_closed(SweepReport* report);
  Async<bool> delete_one(SessionId id);
  Async<void> trim_journals();

  const Dependencies deps_;
  const Limits limits_;
  bool is_stopped_ = false;
};

}  // namespace clawdforge
