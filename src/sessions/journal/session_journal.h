// SessionJournal numbers what happens in one session and brings it to the ledger. An idle
// writer writes at once; what comes while it writes goes together into the next commit, so
// a lively turn costs few of them. Nothing counts as having happened before its commit:
// a part that answers a caller waits for committed() first, and readers get what is committed from
// the feed. Belongs to a LiveSession; io thread.
//
// That a turn has begun is the one thing that waits for company, for a moment: the turn of a
// quick agent then costs one commit instead of two.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/clock.h"
#include "base/limits/byte_budget.h"
#include "base/telemetry/log.h"
#include "ledger/sessions/journal_rows.h"
#include "sessions/journal/feed.h"

namespace clawdforge {

// How long the beginning of a turn may wait to be written.
inline constexpr std::chrono::milliseconds kTurnStartDelayMax{2};
// How much one row holds, unless a single event is larger, and how much one commit.
inline constexpr std::size_t kJournalBlockBytesMax = 256 * 1024;
inline constexpr std::size_t kJournalCommitBytesMax = 256 * 1024;
// Of events, after which the ledger looks whether the session has too many; a quarter of what it
// may have if that is less.
inline constexpr std::int64_t kUncheckedJournalBytesMax = 1024 * 1024;
// How long an answer waits for its commit. Longer than it takes to see that the ledger is stuck.
inline constexpr std::chrono::seconds kCommitWaitMax{12};
// With more than this waiting to be written, the agent is not read.
inline constexpr std::size_t kJournalWaitingBytesMax = 8 * 1024 * 1024;

// Of the same, for one session; what is more is counted in the memory budget.
inline constexpr std::size_t kUncountedJournalBytesMax = 1024 * 1024;
// Turns of which it is known when they began: more than can wait, run and be told of late.
inline constexpr std::size_t kTurnTimesMax = 32;

struct JournalLimits {
  // What the ledger keeps of the session: its oldest events go when it has more.
  std::int64_t bytes_max = std::numeric_limits<std::int64_t>::max();
  ByteBudget* memory = nullptr;  // counts what waits to be written; null: without a limit
  std::function<void(std::int64_t)> on_kept = {};  // is told how many bytes the ledger took
  std::function<void()> on_news = {};              // the ledger took news for a webhook
};

struct TurnBeginning {
  std::int64_t index = 0;
  std::string json{};     // of its `turn` event
  std::string title{};    // for a session that has none yet; empty: none
  bool is_urgent = true;  // written at once
  std::optional<AskKey> key{};
};

class SessionJournal {
 public:
  // `tasks` runs the writer and outlives the journal, as all that is handed in.
  SessionJournal(IoExecutor executor, TaskGroup& tasks, JournalRows& rows, const Clock& clock,
                 Log& log, std::shared_ptr<Feed> feed, SessionId session_id, AppName app,
                 JournalLimits limits = {});
  SessionJournal(const SessionJournal&) = delete;
  SessionJournal& operator=(const SessionJournal&) = delete;

  // A turn has begun, with `json` as the data of its `turn` event; gives that event's number.
  std::int64_t begin_turn(TurnBeginning beginning);
  // `memory` is what counts a large event until here.
  void append(std::int64_t turn_index, EventKind kind, std::string json, ByteHold memory = {});
  void note(AuditEvent event);
  void settle_turn(TurnSettled settled);
  void tell(SessionNews news);

  // Given to an event, whether it is committed or not.
  std::int64_t last_event_id() const { return last_event_id_; }

  // How much was handed in until now, for committed().
  std::uint64_t mark() const { return given_; }
  // Returns when all until `mark` is committed. An error: the ledger did not take it; it is
  // tried again for as long as the session is here, unless it is not Errc::unavailable: then it
  // is dropped, with what waits after it; or it does not answer: "ledger_stalled".
  Async<void> committed(std::uint64_t mark);
  Async<void> committed() { return committed(given_); }
  // Returns when there is space for more.
  Task<void> wait_for_space();

  bool is_idle() const { return !is_writing_; }
  // With what is in the ledger's hands and not committed.
  std::size_t waiting_bytes() const { return waiting_.bytes + writing_bytes_; }
  // Why the last attempt failed; none: it went well.
  const std::optional<Failure>& failure() const { return failure_; }
  Task<void> idle();
  // Tries once more at most what the ledger does not take.
  void give_up();

 private:
  struct Waiting {
    SessionWrite write;
    // For each start, each end, each line of the audit and each news the last event given before
    // it: it is written with that event, or a crash in between would show one without the other.
    std::vector<std::int64_t> starts_after;
    std::vector<std::int64_t> ends_after;
    std::vector<std::int64_t> audit_after;
    std::vector<std::int64_t> news_after;
    // For each block how much was handed in before its first event.
    std::vector<std::uint64_t> given_before;
    std::size_t bytes = 0;
    bool is_urgent = false;
    bool is_empty() const;
  };

  // A write that the ledger will never take: what was handed in after `after`, until `upto`.
  struct Refused {
    std::uint64_t after = 0;
    std::uint64_t upto = 0;
    Failure failure;
  };

  // What goes into one commit.
  struct Batch {
    std::shared_ptr<SessionWrite> write = std::make_shared<SessionWrite>();
    std::uint64_t mark = 0;  // all until here is in the ledger when this is
    std::size_t bytes = 0;
  };

  void add_line(std::int64_t turn_index, EventKind kind, std::string json);
  std::optional<std::int64_t> offset_of(std::int64_t turn_index, TimePoint now) const;
  void wake_writer(bool is_urgent);
  void count_held();
  Task<void> write();
  Batch take_batch();
  // False: the ledger refuses it, or the journal gave up.
  Task<bool> write_batch(std::shared_ptr<const SessionWrite> write);
  bool is_refused(std::uint64_t mark) const;

  const IoExecutor executor_;
  TaskGroup& tasks_;
  JournalRows& rows_;
  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<Feed> feed_;
  const SessionId session_id_;
  const AppName app_;
  const JournalLimits limits_;
  std::int64_t unchecked_bytes_ = 0;  // written since the ledger looked at the session's size
  std::int64_t last_event_id_;
  std::map<std::int64_t, TimePoint> begun_at_;  // of the newest turns
  Waiting waiting_;
  ByteHold memory_;                 // of what waits and of what is being written
  bool lacks_memory_ = false;       // there is no place for all of it
  std::size_t writing_bytes_ = 0;   // of the batch that is being written
  std::uint64_t writing_mark_ = 0;  // likewise
  std::uint64_t given_ = 0;         // how many things were handed in
  std::uint64_t committed_ = 0;     // how many of them are in the ledger
  std::uint64_t attempts_ = 0;      // to write, whatever came of them
  std::optional<Failure> failure_;  // of the last attempt
  std::optional<Refused> refused_;  // the last one
  bool is_writing_ = false;
  bool gives_up_ = false;
  bool is_lost_ = false;  // it gave up: nothing is kept any more
  Signal hurry_;          // ends a pause of the writer
  Signal changed_;        // something was committed, or failed
};

}  // namespace clawdforge
