// What an app wants to do, as far as admission needs to know it.
#pragma once

#include <string>

namespace clawdforge {

enum class WorkKind {
  run,            // one prompt to a process of its own
  turn,           // one prompt to the agent of a session
  session_start,  // a new session
};

struct Work {
  WorkKind kind = WorkKind::run;
  std::string agent;
  std::string model;  // empty: the agent's default
};

}  // namespace clawdforge
