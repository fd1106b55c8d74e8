// OneShotAgent is an agent that answers one prompt and ends. One process tree, owned by one
// run; io thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/result.h"
#include "model/run.h"

namespace clawdforge {

struct OneShotRequest {
  std::string prompt;
  std::string model;
  std::string system_file;  // path of a file that holds the system prompt; empty: there is none
  SystemMode system_mode = SystemMode::append;
  std::string effort;                    // empty: the agent's own default
  std::optional<double> budget_usd{};    // what it may spend, for agents that can be told
  std::vector<std::string> attachments;  // names in the working directory
};

struct OneShotAnswer {
  std::optional<Failure> failure;  // none: it went well
  std::string text;                // the result as the agent wrote it
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::vector<Denial> denials;
  std::optional<int> exit_code;  // if the program had ended when the answer was given
  std::optional<int> exit_signal;
  std::string error_tail;  // of standard error: valid UTF-8, masked
};

class OneShotAgent {
 public:
  virtual ~OneShotAgent() = default;

  virtual ProcessMark mark() const = 0;

  // Sends the prompt and gives the answer as soon as it is whole; the program may still be
  // running then. Once.
  virtual Task<OneShotAnswer> answer() = 0;

  // Ends the tree now; a pending answer() returns at once, as a failure, without waiting for
  // how the program ends.
  virtual void stop() = 0;

  // Must follow answer(), or a start that is given up: lets the program end by itself for a
  // moment, then ends the tree, and waits until nothing of it is left. After it only the
  // destructor may follow.
  virtual Task<void> finish() = 0;
};

}  // namespace clawdforge
