// ClaudeOneShot is a OneShotAgent behind Claude's command line in its print mode: the process
// gets the prompt on its standard input, prints one result, and ends. Io thread only; it
// outlives no Spawner, and its owner calls finish() before it dies.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_setup.h"
#include "agent/core/agent_starter.h"
#include "agent/core/line_reader.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "process/tree/child.h"

namespace clawdforge {

// How long a program that has given its result may take to end by itself.
inline constexpr std::chrono::milliseconds kWindDownMax{1000};
// How long one that has closed its output without a result may take to end.
inline constexpr std::chrono::milliseconds kSpeechlessMax{5000};

// Of a program's output; what is more is counted against the memory budget.
inline constexpr std::size_t kUncountedOutputBytesMax = 1024 * 1024;

class ResultReader;

// The arguments of its process.
std::vector<std::string> claude_one_shot_arguments(const StartOrder& order,
                                                   const OneShotRequest& request);

class ClaudeOneShot final : public OneShotAgent {
 public:
  ClaudeOneShot(std::unique_ptr<Child> child, AgentSetup setup, const OneShotRequest& request);

  ProcessMark mark() const override { return setup_.mark_of(*child_); }
  Task<std::optional<Failure>> warm_up() override;
  void adopt(AppName app, OneShotRequest request) override;
  bool is_ending() const override { return status_ || is_stopped_; }
  Task<OneShotAnswer> answer() override;
  void stop() override;
  Task<void> finish() override;

 private:
  Task<void> send_prompt();
  Task<void> await_end();
  Task<void> wait_for_end(std::chrono::milliseconds most);
  Task<void> read_result(ResultReader* reader, GaugeShare* held);
  Task<bool> feed(ResultReader* reader, std::optional<std::string> piece);
  Task<void> read_lines(ResultReader* reader, GaugeShare* held);
  Task<void> watch_warm_up();
  bool count_held(std::size_t bytes);
  Task<Failure> fail_without_result(const ResultReader* reader);
  void note_end(OneShotAnswer& answer) const;

  std::unique_ptr<Child> child_;
  AgentSetup setup_;
  LineReader lines_;                  // of a spare, which prints one message a line
  bool is_warm_ = false;              // a spare is ready for its prompt
  bool reads_on_ = false;             // a later result of a spare replaces an earlier one
  std::string prompt_;                // as the program reads it; empty from answer() on
  ByteHold held_;                     // of its output
  std::optional<Failure> no_memory_;  // for its output

  // The prompt is written, and the program's end awaited, while its output is read: a program
  // may print before it has read, and need not read at all.
  bool is_begun_ = false;
  bool is_stopped_ = false;
  std::optional<ExitStatus> status_;
  Signal ended_;  // the program has ended, or is being stopped
  TaskGroup tasks_;
};

}  // namespace clawdforge
