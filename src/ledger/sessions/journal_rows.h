// The rows of turns and of the journal, which holds the events of sessions, with the sums of
// both in the session's row. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "ledger/core/ledger_records.h"

namespace clawdforge {

class LedgerWorker;
class SqlDriver;

class JournalRows {
 public:
  JournalRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  // The session's journal from the block on that holds the first event after `after`: at
  // least one block if there is any, and not much more than `bytes_max`.
  Async<std::vector<JournalBlock>> page(SessionId session_id, std::int64_t after,
                                        std::size_t bytes_max, Lane lane = {}) const;

  // Its turns after the one of index `after`: at most `limit`, and fewer where their prompts are
  // large.
  Async<TurnPage> turns(SessionId session_id, std::int64_t after, std::int64_t limit,
                        Lane lane = {}) const;

  // The first event of the oldest turn that was not closed when event `at` was told; none: all
  // were.
  Async<std::optional<std::int64_t>> open_turn_at(SessionId session_id, std::int64_t at,
                                                  Lane lane = {}) const;

  // A session whose row is gone stays gone, and nothing is written for it. A write that is
  // repeated counts once. When the worker is stuck this waits until it is known what became of
  // the write. Errc::gone "session_closed" when the session is another living gateway's.
  Async<void> write(SessionWrite write);
  // The same without a copy of the events. They must stay as they are until this is answered.
  Async<void> write(std::shared_ptr<const SessionWrite> write);
  // Removes blocks written at or before `last`, at most `blocks_max`; gives how many.
  Async<std::int64_t> trim_old(TimePoint last, std::int64_t blocks_max);
  // Removes the oldest blocks of sessions that have more than `bytes_max`, at most
  // `blocks_max`; gives how many.
  Async<std::int64_t> trim_large(std::int64_t bytes_max, std::int64_t blocks_max);

  // At start, of lives that have ended: turns that have not, at most `limit`.
  Async<std::vector<UnfinishedTurn>> unfinished_turns(std::int64_t limit) const;

 private:
  Async<void> write_in_parts(std::shared_ptr<const SessionWrite> write);
  Async<void> write_rows(std::shared_ptr<const SessionWrite> write);

  LedgerWorker& worker_;
  const InstanceId self_;
};

// For the rows of sessions: removes a session's oldest blocks in the caller's transaction, at
// most `blocks_max`, and takes them off its sum; gives how many.
Result<std::int64_t> remove_oldest_blocks(SqlDriver& driver, const SessionId& session_id,
                                          std::int64_t blocks_max);

// For writes: the same until the session has no more than `bytes_max`.
Result<void> keep_journal_within(SqlDriver& driver, const SessionId& session_id,
                                 std::int64_t bytes_max);

}  // namespace clawdforge
