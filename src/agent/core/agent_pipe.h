// AgentPipe is the process of a SessionAgent with what passes between us and it: bytes that
// go out through a bounded outbox, bytes that come in while a reader waits for them, and why
// it has ended. Owned by the agent, whatever that speaks; io thread only. Its owner calls
// wind_down() before it dies.
//
// Three tasks run beside the reader: one writes, so that an agent which does not read does not
// hold its callers up; one waits for the process to end; and one, while the conversation is
// being opened, watches over the deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/agent_setup.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "base/telemetry/metrics.h"
#include "model/agent.h"
#include "process/tree/child.h"

namespace clawdforge {

// What waits to be read by the agent; one that leaves more unread is ended.
inline constexpr std::size_t kAgentOutboxBytesMax = 64 * 1024 * 1024;
// Of a message that has begun and not ended; what is more is counted against the memory budget.
inline constexpr std::size_t kUncountedLineBytesMax = 1024 * 1024;
// How long an agent is not read because there is no memory for its message. Longer than a reader
// that takes nothing holds an event: ServerOptions::write_stall_max.
inline constexpr std::chrono::seconds kMemoryWaitMax{40};
// How long an agent may take to end by itself when it is told to, or has closed its input or
// output.
inline constexpr std::chrono::milliseconds kAgentWindDownMax{1000};

class AgentPipe {
 public:
  // `setup` outlives it.
  AgentPipe(std::unique_ptr<Child> child, const AgentSetup& setup);

  IoExecutor executor() { return child_->executor(); }
  ProcessMark mark() const;
  std::string error_tail() const;  // masked

  // What it says is counted for the app of the setup from now on.
  void adopt() { held_ = setup_.open_memory(); }

  // From begin_opening() on the steps of the start have deadlines, up to end_opening(). A spare
  // begins twice: before it is given out, and after.
  void begin_opening();
  void begin_step();  // its time begins
  void end_opening();

  // Returns at once.
  void send(std::string_view bytes);

  // None: nothing comes any more.
  Task<std::optional<std::string>> read();

  // Counts what is held of messages that are not taken yet. Waits while there is no memory for so
  // much, because what its app holds may become less; then the agent is ended.
  Task<void> count_held(std::size_t bytes);
  // Counts for so many of these bytes, which are on their way to the journal.
  ByteHold hand_over(std::size_t bytes);

  // Its output has ended, or we have ended it: why. Waits until that is known. Unless its owner
  // has stopped it, the log says why too.
  Task<Failure> cause_of_end();
  void report(const Failure& why) const;  // in the log

  // Ends the tree because of `trouble`, or because its owner wants it.
  void end_for(Failure trouble);
  void stop();
  // True: ended, or about to.
  bool is_ending() const { return trouble_ || is_stopped_ || status_; }
  // Also true when its end has not been told yet.
  bool has_left() const { return is_ending() || !child_->has_input_reader(); }
  bool has_trouble() const { return trouble_.has_value(); }

  // A reader holds one for as long as it reads; wind_down() waits until it is destroyed.
  class Presence {
   public:
    explicit Presence(AgentPipe& pipe) : pipe_(pipe) { pipe_.is_read_ = true; }
    ~Presence() {
      pipe_.is_read_ = false;
      pipe_.nudge();
    }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

   private:
    AgentPipe& pipe_;
  };
  bool is_read() const { return is_read_; }
  // Until a reader has left, nudge() is called, or the pipe is stopped.
  Task<void> wait_for_nudge();
  void nudge() { nudged_.notify_all(); }

  // A task that ends by itself before wind_down() does.
  void spawn(Task<void> task) { tasks_.spawn(std::move(task)); }

  // Ends politely, then firmly, and waits until nothing of the tree is left.
  Task<void> wind_down();

 private:
  Fit try_to_hold(std::size_t bytes);
  Task<void> write_out();
  Task<void> end_without_input();
  Task<void> await_end();
  Task<void> watch_deadline();

  std::unique_ptr<Child> child_;
  const AgentSetup& setup_;

  Timer deadline_;  // of a step of the opening
  Signal ended_;    // the process has ended, or is being stopped
  Signal nudged_;
  bool is_begun_ = false;
  bool is_opening_ = false;
  bool is_read_ = false;
  bool is_stopped_ = false;
  std::optional<Failure> trouble_;  // why we have ended it
  std::optional<ExitStatus> status_;

  std::string outbox_;
  std::size_t writing_bytes_ = 0;  // taken out of the outbox and not yet written
  GaugeShare outbox_shown_;
  bool is_writing_ = false;
  GaugeShare held_shown_;
  ByteHold held_;               // of what it said
  std::size_t held_bytes_ = 0;  // of a message that is not whole yet
  unsigned pieces_ = 0;         // read so far

  TaskGroup tasks_;
};

}  // namespace clawdforge
