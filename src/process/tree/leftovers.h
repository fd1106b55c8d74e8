// Leftovers are process trees that an earlier life of the gateway has started and that its
// ledger still names. Their launchers end them when the lifeline breaks, so this is mostly
// waiting until they are really gone. What does not end by itself is ended here: a launcher
// that is stopped or hangs, with everything below it.
//
// A tree is touched only if pid, start time and the kernel's boot id are those that were
// written down, and signalled only through descriptors that name the process and not its
// number: a stranger who has the number now is never hit. What cannot be found this way are
// the descendants of a launcher that is gone: see docs/adr/0021-what-an-earlier-life-left.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "process/tree/child.h"

namespace clawdforge {

// For all of them together. A start never waits longer than this, and what follows.
inline constexpr std::chrono::seconds kLeftoversEndMax{10};
// For one that renews a login.
inline constexpr std::chrono::seconds kLeftoversBusyMax{15};
// Processes of one leftover tree that are followed at the same time.
inline constexpr std::size_t kLeftoverProcessesMax = 1'000;

struct Leftover {
  ProcessId id;
  std::string boot_id;
};

struct LeftoversReport {
  std::int64_t ended = 0;           // trees that were there and are gone
  std::vector<std::int64_t> stuck;  // launchers of those that are not, by their pids
};

// TERM, the grace, KILL, until nothing is left or the time is up. Io thread.
// While one of the `busy` paths exists, the KILL waits for up to kLeftoversBusyMax more: their
// launchers see to that, too.
Task<LeftoversReport> end_leftovers(IoExecutor executor, std::vector<Leftover> leftovers,
                                    std::chrono::milliseconds kill_grace,
                                    std::vector<std::string> busy = {});

}  // namespace clawdforge
