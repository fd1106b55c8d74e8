// What runs beside an AcpAgent's reader: part of acp_agent.cc and acp_open.cc.
#pragma once

#include <optional>
#include <string>

#include "agent/acp_agent.h"
#include "base/task_group.h"
#include "base/timer.h"

namespace clawdforge {

struct AcpAgent::Works {
  explicit Works(IoExecutor executor)
      : deadline(executor), ended(executor), farewell(executor), quiet(executor), tasks(executor) {
    deadline.expires_at(Timer::time_point::max());
    quiet.expires_at(Timer::time_point::max());
  }

  Timer deadline;          // of a step of open()
  bool is_opening = true;  // somebody watches over it
  Timer ended;             // next() waits by it for the process to end
  Timer farewell;          // finish() likewise
  Timer quiet;             // never expires; cancelled when nobody is in next() any more
  bool is_reading = false;
  std::optional<ExitStatus> status;

  std::string outbox;
  std::size_t writing_bytes = 0;  // taken out of the outbox and not yet written
  bool is_writing = false;
  unsigned pieces = 0;  // read so far

  TaskGroup tasks;
};

}  // namespace clawdforge
