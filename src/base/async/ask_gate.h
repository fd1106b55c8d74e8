// AskGate is asked when a run or a turn has its place and its agent is about to be asked: for a
// caller who writes down that it begins, or wants it no more. Io thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "base/async/async.h"

namespace clawdforge {

// Of a turn: its index, and the last event of its session before it.
struct AskPlace {
  std::optional<std::int64_t> turn_index;
  std::int64_t after_event = 0;
};

class AskGate {
 public:
  virtual ~AskGate() = default;
  // Once. An error: no agent is asked, and that is the answer.
  virtual Async<void> begin(AskPlace place) = 0;
};

}  // namespace clawdforge
