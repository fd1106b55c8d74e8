// What a turn is asked. A plain record.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/limits/byte_budget.h"
#include "model/agent.h"
#include "model/ask_key.h"
#include "transcript/event_collector.h"
#include "transcript/turn_outcome.h"

namespace clawdforge {

class JsonSchema;

struct TurnRequest {
  std::string prompt;
  std::vector<std::string> files;  // tokens
  std::chrono::seconds timeout{};
  std::shared_ptr<const JsonSchema> schema{};  // that its answer must meet; null: none
  // What the app may have at most, which may be less than its session was made with.
  PermissionMode permission_mode_max = PermissionMode::approve_all;
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
  // Its ask has reserved something, or has a key: its agent is asked only when the ledger knows the
  // turn.
  bool is_reserved = false;
  bool waits = false;                      // rather than be refused by a limit that ends in time
  bool waits_for_workspace = true;         // while others work in the owner's directory
  std::shared_ptr<EventCollector> events;  // gathers them for the answer; none: no caller waits
  ByteHold memory;                         // for what is gathered; by default without a limit
  std::shared_ptr<KeyHold> key{};          // null: it was asked without one
  // With a key: what its caller is told, to be kept.
  std::function<KeptAnswer(const TurnOutcome&)> answer_of{};
};

}  // namespace clawdforge
