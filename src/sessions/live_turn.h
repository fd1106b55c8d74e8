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
#include "base/async.h"
#include "base/timer.h"
#include "sessions/turn.h"
#include "storage/work/run_dirs.h"

namespace clawdforge {

// What a plain answer holds at most; the journal has it all.
inline constexpr std::size_t kAnswerEventsBytesMax = 64 * 1024 * 1024;
inline constexpr std::size_t kAnswerTextBytesMax = 1024 * 1024;

// Why a turn was not left to end by itself.
enum class TurnStop { none, timed_out, silent, cancelled, caller_gone, closed, shutdown };

class LiveTurn {
 public:
  LiveTurn(IoExecutor executor, std::int64_t index, TurnRequest request,
           std::vector<Attachment> attachments);
  LiveTurn(const LiveTurn&) = delete;
  LiveTurn& operator=(const LiveTurn&) = delete;

  // Calls `on_deadline` when the turn's time is up, unless it was answered before.
  void start_deadline(std::move_only_function<void()> on_deadline);

  // Adds what the agent said to the answer, as far as somebody waits and it has room.
  void collect(const AgentEvent& event);
  // There is no room for them.
  void forget_events();
  // Nobody waits any more.
  void stop_collecting();

  // Gathered for the answer, or waiting in it to be taken.
  std::size_t held_bytes() const;

  // Decides how it ended, once: by the agent's own word, or by `failure`, which beats it.
  const TurnOutcome& conclude(std::optional<TurnEnd> end, std::optional<Failure> failure);
  bool is_over() const { return is_over_; }
  TurnOutcome take_outcome() { return std::move(outcome_); }

  void set_answer(Result<TurnOutcome> outcome);
  bool is_answered() const { return is_answered_; }
  Task<void> wait();
  Result<TurnOutcome> take() { return std::move(answer_); }  // once, after wait()

  const std::int64_t index;
  TurnRequest request;
  std::vector<Attachment> attachments;
  TurnStop stop = TurnStop::none;
  std::chrono::steady_clock::time_point begun;
  std::chrono::steady_clock::time_point give_up_at;  // until when its session waits for it
  bool has_place = false;                            // its agent may run
  bool is_begun = false;                             // the agent has been asked
  bool is_heard = false;                             // and has said something
  std::optional<bool> is_resumed;
  std::string error_tail;
  Timer changed;  // cancelled when it is over, or its give_up_at has changed

 private:
  bool is_over_ = false;
  TurnOutcome outcome_;
  std::vector<std::string> events_;
  std::size_t events_bytes_ = 0;
  std::string text_;
  bool is_collecting_ = true;
  bool is_events_truncated_ = false;
  bool is_text_truncated_ = false;
  Timer deadline_;
  Timer answered_;
  bool is_answered_ = false;
  Result<TurnOutcome> answer_ = TurnOutcome{};
};

}  // namespace clawdforge
