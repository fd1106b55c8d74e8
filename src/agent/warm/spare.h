// A spare is an agent that was started before it is known for whom: its process runs, and has done
// what it does first. It belongs to no app, and to no conversation, until a start takes it. It is
// used once. A record of the WarmPool; io thread only. It is for a session, or for a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "agent/core/agent_starter.h"
#include "agent/warm/demand.h"

namespace clawdforge {

// Starts that a spare of this kind can serve, unless something of the machine has changed.
struct SpareKind {
  bool is_run = false;  // else it is for sessions
  std::string agent;
  std::string model;   // of runs, which are started with it
  std::string effort;  // likewise
  PermissionMode mode = PermissionMode::deny_all;
  std::string profile;  // what the policies of its apps say of the process
  AppName app;          // one of them, whose policy the next spare is started with; may be empty

  Demand demand = {};
  std::size_t starting = 0;      // spares of this kind that are on their way
  Demand::Time not_before = {};  // after a spare that failed
  std::chrono::seconds pause{};  // that was waited for after the last one that failed
  std::size_t wanted = 0;        // as it was decided last
};

struct Spare {
  bool is_ending() const { return session ? session->is_ending() : shot->is_ending(); }
  void stop() { session ? session->stop() : shot->stop(); }

  SpareKind* kind = nullptr;
  std::string id;               // names its directory, and the session or run that takes it
  StartOrder order;             // that it was started by
  std::string start_text = {};  // all that was fixed then
  std::unique_ptr<SessionAgent> session = nullptr;  // either this
  std::unique_ptr<OneShotAgent> shot = nullptr;     // or this, of a run
  Demand::Time born = {};
  Demand::Time looked = {};  // whether a start would still give the same
  bool is_claimed = false;   // a session is being made for it
  bool is_stale = false;     // a start would give something else now
};

}  // namespace clawdforge
