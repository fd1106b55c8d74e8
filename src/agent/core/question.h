// What an agent is asked, and what comes of it: its answer, or how it failed. Plain
// records, no I/O.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/run.h"

namespace clawdforge {

enum class SystemMode { append, replace };

struct OneShotRequest {
  std::string agent;  // "claude" or "demo"
  std::string prompt;
  std::string model;
  std::string system;  // empty: none
  SystemMode system_mode = SystemMode::append;
  std::string effort;                    // empty: the agent's own default
  std::vector<std::string> attachments;  // names in working_dir
  std::string working_dir;               // both are there and empty but for the attachments
  std::string temp_dir;
};

inline Failure agent_failed(std::string_view code, std::string message) {
  return {.kind = Errc::agent_failed, .code = code, .message = std::move(message)};
}

struct OneShotAnswer {
  std::optional<Failure> failure;  // none: it went well
  std::string text;                // the result as the agent wrote it
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::optional<int> exit_code;  // if the program had ended when the answer was given
  std::optional<int> exit_signal;
  std::string error_tail;  // of standard error: valid UTF-8, masked
};

}  // namespace clawdforge
