// OneShotAgent is an agent that answers one prompt and ends. One process tree, owned by one
// run; io thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "model/run.h"

namespace clawdforge {

struct AgentEvent;

// Hears what an agent of sessions says while it works on a single prompt. Io thread only.
class ShotListener {
 public:
  virtual ~ShotListener() = default;
  virtual void add(AgentEvent event) = 0;
  // Returns when more may be added: the agent is not read meanwhile.
  virtual Task<void> wait_for_space() = 0;
};

struct OneShotRequest {
  std::string prompt;
  std::string model;
  std::string system;       // the system prompt, for agents of sessions
  std::string system_file;  // for others: path of a file that holds it; empty: there is none
  SystemMode system_mode = SystemMode::append;
  std::string effort;                  // empty: the agent's own default
  std::optional<double> budget_usd{};  // this and the next two: as in SingleUse
  std::optional<ToolChoice> tools{};
  std::optional<int> max_turns{};
  std::string schema{};                      // JSON Schema that the answer must meet; empty: none
  std::vector<std::string> attachments;      // names in the working directory
  std::shared_ptr<ShotListener> listener{};  // null: only the answer is of interest
};

struct OneShotAnswer {
  std::optional<Failure> failure;  // none: it went well
  std::string text;                // the result as the agent wrote it
  std::string structured;          // JSON text of an answer by the schema; empty: in the text
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::vector<Denial> denials;
  std::optional<int> exit_code;  // if the program had ended when the answer was given
  std::optional<int> exit_signal;
  std::string error_tail;  // of standard error: valid UTF-8, masked
};

// The prompt as agents get it: with the names of its attachments at its end.
inline std::string with_attachments(std::string prompt, const std::vector<std::string>& names) {
  if (names.empty()) return prompt;
  prompt += "\n\nAttached files in the current directory:";
  for (const std::string& name : names) prompt.append("\n- ").append(name);
  return prompt;
}

class OneShotAgent {
 public:
  virtual ~OneShotAgent() = default;

  virtual ProcessMark mark() const = 0;

  // For a spare: gets the program ready for a prompt. At most once, before adopt(). After a failure
  // finish() it.
  virtual Task<std::optional<Failure>> warm_up() { co_return std::nullopt; }
  // The spare belongs to this app from now on, and answers this request.
  virtual void adopt(AppName /*app*/, OneShotRequest /*request*/) {}
  // It has ended, or is about to.
  virtual bool is_ending() const { return false; }
  // The agent's own id of its conversation, as in Opened; empty: there is none yet, or never.
  virtual std::string agent_session_id() const { return {}; }

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
