// OneShots asks an agent's command line one question: a process is started, gets the
// prompt on its standard input, prints one result, and ends. Owned by the daemon; io
// thread only. A OneShot is one such process; it outlives no Spawner.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/question.h"
#include "base/async.h"
#include "base/metrics.h"
#include "process/tree/spawner.h"

namespace clawdforge {

// How long a program that has given its result may take to end by itself.
inline constexpr std::chrono::milliseconds kWindDownMax{1000};
// How long one that has closed its output without a result may take to end.
inline constexpr std::chrono::milliseconds kSpeechlessMax{5000};

class ResultReader;

class OneShot {
 public:
  struct Setup {
    std::string agent;
    std::string prompt;                // as the program reads it
    const Clock* clock = nullptr;      // to read a limit's end by
    std::vector<std::string> secrets;  // masked in all that it prints, but for its answer
    std::string boot_id;
    Gauge* output_bytes = nullptr;  // what such programs have printed so far; may be null
  };

  OneShot(std::unique_ptr<Child> child, Setup setup);
  ~OneShot();

  ProcessMark mark() const;

  // Sends the prompt and gives the answer as soon as the result line is whole; the
  // program may still be running then. Once.
  Task<OneShotAnswer> answer();

  // Ends the tree now; a pending answer() returns at once, as a failure, without waiting
  // for how the program ends.
  void stop();

  // Must follow answer(): gives the program a moment to end by itself, then ends the tree,
  // and waits until nothing of it is left.
  Task<void> finish();

 private:
  struct Works;  // what runs beside answer()

  Task<void> send_prompt();
  Task<void> await_end();
  Task<void> wait_for_end(std::chrono::milliseconds most);
  Task<void> read_result(ResultReader* reader, GaugeShare* held);
  Task<Failure> fail_without_result(const ResultReader* reader);
  void note_end(OneShotAnswer& answer) const;

  std::unique_ptr<Child> child_;
  Setup setup_;
  std::unique_ptr<Works> works_;  // from answer() on
  bool is_stopped_ = false;
};

class OneShots {
 public:
  struct Options {
    std::string claude_bin = "claude";
    std::string demo_program;  // our own program, which has the demo agent built in
    std::map<std::string, std::string> environment;  // ours; an allow-list picks from it
    std::vector<std::string> more_names;             // passed on beyond the allow-list
    std::map<std::string, std::string> set_environment;
    bool owner_settings = false;  // the owner's own settings, plugins and memory apply too
    Metrics* metrics = nullptr;   // to show how much is held; may be null, else outlives it
  };

  OneShots(Spawner& spawner, const Clock& clock, Options options);

  // Errc::unavailable when the system refuses another process, or the file that a long
  // system prompt needs. That the program is not there shows in the answer.
  Result<std::unique_ptr<OneShot>> start(OneShotRequest question);

 private:
  Spawner& spawner_;
  const Clock& clock_;
  const Options options_;
  const std::string boot_id_;
  Gauge* const output_bytes_;
};

}  // namespace clawdforge
