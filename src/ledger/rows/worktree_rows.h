// The rows of git worktrees that sessions and runs have in repositories of the owner's. A row is
// there before its worktree is, and goes after it: so whatever ends a gateway, the next one knows
// what is to be removed. What every call promises: ledger/ledger.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "base/clock.h"
#include "model/workspace.h"

namespace clawdforge {

class LedgerWorker;

class WorktreeRows {
 public:
  explicit WorktreeRows(LedgerWorker& worker) : worker_(worker) {}

  // To add the same one again changes nothing.
  Async<void> add(Worktree worktree, TimePoint now, Lane lane = {});
  // Its branch stays when the worktree goes.
  Async<void> keep_branch(std::string owner_id, Lane lane = {});
  // None: it has no worktree.
  Async<std::optional<Worktree>> find(std::string owner_id) const;
  // Those whose session is not there, the oldest first; those of runs are among them.
  Async<std::vector<Worktree>> without_session(std::int64_t limit) const;
  Async<void> remove(std::string owner_id);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
