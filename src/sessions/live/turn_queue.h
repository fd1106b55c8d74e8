// TurnQueue has the turns of one session, from their acceptance to their answer. It numbers
// them, keeps their order, writes down how each ended, and answers its caller when that is
// committed. One turn runs at a time; the session does what it asks for. Member of a
// LiveSession; io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/async/async.h"
#include "sessions/journal/session_journal.h"
#include "sessions/live/live_turn.h"
#include "sessions/live/session_dependencies.h"

namespace clawdforge {

// Turns of one session that wait for the one that runs.
inline constexpr std::size_t kWaitingTurnsMax = 8;
// What an agent says within this after a turn's end belongs to that turn.
inline constexpr std::chrono::seconds kLateMax{5};

class TurnQueue {
 public:
  // All outlives the queue. `session` is the owner's row: the queue counts turns and cost there.
  TurnQueue(const LiveSessionDependencies& shared, Session& session, SessionJournal& journal);
  TurnQueue(const TurnQueue&) = delete;
  TurnQueue& operator=(const TurnQueue&) = delete;

  // `turns_given` is what the row says. Errc::conflict "turn_queue_full", or why the journal
  // takes nothing. Atomic towards the io thread.
  Result<std::shared_ptr<LiveTurn>> accept(TurnRequest request, std::vector<Attachment> attachments,
                                           std::int64_t turns_given);

  // The oldest turn that waits runs from now on; null: none waits.
  std::shared_ptr<LiveTurn> run_next();
  // The turn that runs has been answered.
  void end_run();

  const std::shared_ptr<LiveTurn>& running() const { return running_; }  // may be null
  // The turn that the agent works on: it runs, and the agent was asked. May be null.
  LiveTurn* asked() const;
  bool is_busy() const { return running_ != nullptr || !waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t answer_bytes() const { return running_ ? running_->held_bytes() : 0; }
  // When a turn or an agent's start ended last.
  std::chrono::steady_clock::time_point last_active() const { return last_active_; }

  // Another process of the agent takes the turns from now on.
  void note_new_agent();
  // The agent is asked what this turn says.
  void note_asked(LiveTurn& turn);
  // The turn to which something belongs that the agent says now; 0: none.
  std::int64_t index_of(const AgentEvent& event, bool is_early) const;

  // Ends a turn that waits. False: it does not wait.
  bool drop(const std::shared_ptr<LiveTurn>& turn, TurnStop reason);
  // The oldest that waits; null: none does.
  std::shared_ptr<LiveTurn> oldest_waiting() const;
  // What a turn is told that was stopped for this reason; none: that is not a failure.
  // `has_slot`: its agent may run, so the turn did not only wait.
  std::optional<Failure> failure_of(TurnStop reason, const LiveTurn& turn, bool has_slot) const;

  // Decides how the turn ended, and hands that to the journal.
  void conclude(LiveTurn& turn, std::optional<TurnEnd> end, std::optional<Failure> failure);
  // What the turn's caller is told: how it ended, when that is committed, or why it is not. Once.
  Async<TurnOutcome> answer(std::shared_ptr<LiveTurn> turn);
  // Returns when the end of a concluded turn is committed, or is known not to be.
  Task<void> settle(std::shared_ptr<LiveTurn> turn);

 private:
  TurnBeginning beginning_of(const LiveTurn& turn);

  const LiveSessionDependencies& shared_;
  const SessionDependencies& deps_;
  Session& session_;
  SessionJournal& journal_;
  std::shared_ptr<LiveTurn> running_;
  std::deque<std::shared_ptr<LiveTurn>> waiting_;
  std::int64_t ended_turn_ = 0;  // the last that the agent was asked and that is over
  std::int64_t last_turn_ = 0;   // the last that the agent's present process was asked
  std::chrono::steady_clock::time_point last_active_;
};

}  // namespace clawdforge
