// What runs beside an AcpxAgent's reader: part of acpx_agent.cc and acpx_open.cc.
#pragma once

#include <optional>
#include <string>

#include "agent/acpx_agent.h"
#include "base/task_group.h"
#include "base/timer.h"

namespace clawdforge {

struct AcpxAgent::Works {
  explicit Works(IoExecutor executor)
      : deadline(executor), ended(executor), farewell(executor), quiet(executor), tasks(executor) {
    deadline.expires_at(Timer::time_point::max());
    quiet.expires_at(Timer::time_point::max());
  }

  Timer deadline;          // of a step of open()
  bool is_opening = true;  // somebody watches over it
  Timer ended;             // next() waits by it for the host to end
  Timer farewell;          // finish() likewise
  Timer quiet;             // never expires; cancelled when a reader has left, or has news
  bool is_reading = false;
  bool is_finishing = false;
  bool is_closing = false;  // acpx closes its session
  std::optional<ExitStatus> status;

  std::string outbox;
  std::size_t writing_bytes = 0;  // taken out of the outbox and not yet written
  bool is_writing = false;
  unsigned pieces = 0;  // read so far

  TaskGroup tasks;
};

}  // namespace clawdforge
