// What a turn is asked. A plain record.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "transcript/event_collector.h"
#include "transcript/turn_outcome.h"

namespace clawdforge {

struct TurnRequest {
  std::string prompt;
  std::vector<std::string> files;  // tokens
  std::chrono::seconds timeout{};
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
  std::shared_ptr<EventCollector> events;  // gathers them for the answer; none: nobody waits
};

}  // namespace clawdforge
