// AgentBreaker stands before one kind of agent. It closes by itself when the agent turns out to
// be not logged in, or its account at its limit: callers then get that same answer at
// once and no process is started in vain. When the time is up one run is let through to
// try; how that ends decides. Io thread only.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/core/one_shot.h"

namespace clawdforge {

class AgentBreaker {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  // Why not, with the time to wait; none: pass() now, in the same step.
  std::optional<Failure> refusal(SteadyTime now) const;
  // True: the door is closed, and this run is the one that tries. It must tell by note()
  // or give_up() how it went.
  bool pass() { return is_tried_ = closed_for_.has_value(); }

  // How a run ended: none is success. A failure that closes the door is told how long.
  void note(std::optional<Failure>& failure, SteadyTime now, bool was_trial);
  // The trial ended without showing anything: its caller left, or the gateway stops.
  void give_up() { is_tried_ = false; }

  bool is_open() const { return !closed_for_; }

 private:
  std::optional<Failure> closed_for_;
  SteadyTime until_;       // then somebody may try
  SteadyTime ends_at_;     // what callers are told; may be later
  bool is_tried_ = false;  // somebody has been let through to try
};

}  // namespace clawdforge
