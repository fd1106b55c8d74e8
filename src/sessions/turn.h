// What a turn is asked, and what comes of it. Plain records, and how they are told.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/app.h"
#include "model/run.h"

namespace clawdforge {

struct TurnRequest {
  std::string prompt;
  std::vector<std::string> files;  // tokens
  std::chrono::seconds timeout{};
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
  EventFormat format = EventFormat::acp;
};

struct TurnOutcome {
  std::int64_t turn_index = 0;
  std::optional<Failure> failure;  // none: it went well
  std::string events = "[]";       // JSON text of an array, in the format asked for
  bool is_events_truncated = false;
  std::string text;
  bool is_text_truncated = false;
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::optional<bool> is_resumed;  // the process had to be started again; false: it forgot
  std::string error_tail;
  std::chrono::milliseconds duration{};
};

// The body of a turn's answer without its events: what the closing event holds, too.
std::string turn_json(std::string_view session_id, const TurnOutcome& outcome);

}  // namespace clawdforge
