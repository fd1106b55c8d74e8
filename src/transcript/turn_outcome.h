// What comes of a turn. A plain record.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/run.h"
#include "model/session.h"

namespace clawdforge {

struct TurnOutcome {
  std::int64_t turn_index = 0;
  TurnState state = TurnState::failed;
  std::optional<Failure> failure;    // none: it went well
  bool is_events_truncated = false;  // what the caller gathers of them is not all
  std::string text;
  bool is_text_truncated = false;
  std::string result{};       // JSON text of an answer that meets its schema; empty: none was asked
  std::string failed_text{};  // of an answer that does not meet it: what the agent wrote
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::optional<bool> is_resumed;  // the process had to be started again; false: it forgot
  std::string error_tail;
  std::chrono::milliseconds duration{};
  std::string rate_limit_policy;  // headers of these names; empty: the app has no limits
  std::string rate_limit;
};

}  // namespace clawdforge
