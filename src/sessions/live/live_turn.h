// LiveTurn is one turn that waits or runs: what was asked, what has been said so far, and
// the caller who waits for its answer, if he is still there. Shared by its session and the
// handler that waits. Io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/session_agent.h"
#include "base/async/ask_gate.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "quota/ticket.h"
#include "storage/work/run_dirs.h"
#include "transcript/turn_outcome.h"
#include "transcript/turn_request.h"

namespace clawdforge {

// What a plain answer holds at most; the journal has it all.
inline constexpr std::size_t kAnswerEventsBytesMax = 64 * 1024 * 1024;
inline constexpr std::size_t kAnswerTextBytesMax = 1024 * 1024;
// Of an answer that is checked by a schema: the check is made on the io thread.
inline constexpr std::size_t kCheckedAnswerBytesMax = 256 * 1024;
// Events that are gathered without being counted against the memory budget.
inline constexpr std::size_t kUncountedAnswerBytesMax = 64 * 1024;

// Why a turn was not left to end by itself.
enum class TurnStop { none, timed_out, silent, cancelled, caller_gone, closed, shutdown };

// How far a turn is: it waits for those before it; its agent and its files are made ready; the
// agent was asked; the agent has said something; how it ended is decided.
enum class TurnStage { waiting, preparing, asked, heard, over };

class LiveTurn {
 public:
  LiveTurn(IoExecutor executor, std::int64_t index, TurnRequest request,
           std::vector<Attachment> attachments);
  LiveTurn(const LiveTurn&) = delete;
  LiveTurn& operator=(const LiveTurn&) = delete;

  // Calls `on_deadline` when the turn's time is up, unless it is over before.
  void start_deadline(std::move_only_function<void()> on_deadline);

  // Adds what the agent said to the answer, if a caller waits and the answer has room.
  void collect(const AgentEvent& event);
  // Some events were lost for want of memory: the answer leaves all of them out and says so.
  void forget_events();
  // The caller does not wait any more.
  void stop_collecting() {
    request.events.reset();
    request.memory.release();
  }

  // Gathered for the answer, or waiting in it to be taken.
  std::size_t held_bytes() const;

  // Decides how it ended, once: by the agent's own word, or by `failure`, which beats it.
  const TurnOutcome& conclude(std::optional<TurnEnd> end, std::optional<Failure> failure);
  bool is_over() const { return stage == TurnStage::over; }
  bool is_asked() const { return stage == TurnStage::asked || stage == TurnStage::heard; }
  bool is_stopped() const { return stop != TurnStop::none; }
  // Once, when it is over. From here on the answer's memory is counted by who sends it.
  TurnOutcome take_outcome() {
    request.memory.release();
    return std::move(outcome_);
  }

  const std::int64_t index;
  TurnRequest request;
  std::vector<Attachment> attachments;
  std::shared_ptr<AskGate> gate;  // null: it passes by itself
  std::optional<Ticket> ticket;   // for as long as it lives
  TurnStage stage = TurnStage::waiting;
  TurnStop stop = TurnStop::none;
  std::optional<Failure> stop_failure;  // what its caller is told then; none: not a failure
  std::chrono::steady_clock::time_point begun;
  std::chrono::steady_clock::time_point asked_at;    // once its agent was asked
  std::chrono::steady_clock::time_point give_up_at;  // until when its session waits for it
  std::optional<bool> is_resumed;
  bool waits_in_line = false;       // for the owner's directory, in which others work
  std::uint64_t start_mark = 0;     // of its beginning in the journal
  std::int64_t first_event_id = 0;  // of its `turn` event
  TimePoint accepted_at;
  std::uint64_t journal_mark = 0;  // of its end, once it is over
  std::string error_tail;
  Signal changed;  // it is over, or its give_up_at has changed

 private:
  // The answer by the schema that it must meet.
  Result<std::string> checked_answer(const std::string& structured) const;
  void settle_ticket(std::optional<Failure>& failure, bool was_asked);

  TurnOutcome outcome_;
  std::size_t events_bytes_ = 0;  // of the messages that were gathered
  std::string text_;
  bool is_events_truncated_ = false;  // nothing more is gathered
  bool has_left_out_ = false;         // a message was too large to be read for the answer
  bool is_text_truncated_ = false;
  Timer deadline_;
};

}  // namespace clawdforge
