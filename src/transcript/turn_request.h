// What a turn is asked. A plain record.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/limits/byte_budget.h"
#include "model/agent.h"
#include "transcript/event_collector.h"

namespace clawdforge {

struct TurnRequest {
  std::string prompt;
  std::vector<std::string> files;  // tokens
  std::chrono::seconds timeout{};
  // What the app may have at most, which may be less than its session was made with.
  PermissionMode permission_mode_max = PermissionMode::approve_all;
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
  // Its ask has reserved something: its agent is asked only when the ledger knows the turn.
  bool is_reserved = false;
  bool waits = false;                      // rather than be refused by a limit that ends in time
  std::shared_ptr<EventCollector> events;  // gathers them for the answer; none: no caller waits
  ByteHold memory;                         // for what is gathered; by default without a limit
};

}  // namespace clawdforge
