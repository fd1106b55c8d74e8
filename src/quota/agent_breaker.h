// AgentBreaker keeps runs from starting an agent in vain. One of an agent shuts by itself when the
// agent turns out to have no login, or its account to be at its limit; one of a model when that
// model is at a limit: callers then get that same answer at once. When the time is up one run is
// let through to try. What a run's end says about the login decides whether the breaker opens; an
// end that says nothing about it changes nothing. Io thread only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/result.h"

namespace clawdforge {

class AgentBreaker {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  enum class Scope { agent, model };

  explicit AgentBreaker(Scope scope) : scope_(scope) {}

  // A failure of this cause shuts a breaker of this scope.
  static bool shuts(Scope scope, Cause cause);

  // A run that was let through. The breaker outlives it. Dropped without settle() it says nothing
  // about the agent: the run never started, its caller hung up, or the gateway stops.
  class Pass {
   public:
    // How the run ended; none is success. A failure that shuts the breaker is told how long.
    void settle(std::optional<Failure>& failure, SteadyTime now);
    // It tries for the others, which are refused meanwhile.
    bool is_trial() const { return trial_ != nullptr; }

   private:
    friend class AgentBreaker;
    struct EndTrial {
      void operator()(AgentBreaker* breaker) const { breaker->is_tried_ = false; }
    };
    explicit Pass(AgentBreaker& breaker) : breaker_(&breaker) {}

    AgentBreaker* breaker_;
    std::unique_ptr<AgentBreaker, EndTrial> trial_;  // of a run that tries for the others
  };

  // Why not, with the time to wait; none: let_through() now, in the same step.
  std::optional<Failure> refusal(SteadyTime now) const;
  // While the breaker is shut, this run is the one that tries.
  Pass let_through();

  // How a run ended, also one that had no pass of this breaker.
  void note(std::optional<Failure>& failure, SteadyTime now);

  bool is_shut() const { return shut_by_.has_value(); }
  SteadyTime try_at() const { return try_at_; }

 private:
  const Scope scope_;
  std::optional<Failure> shut_by_;
  SteadyTime try_at_;      // from then on one run may try
  SteadyTime ends_at_;     // what callers are told; may be later
  bool is_tried_ = false;  // a run has been let through to try, and has not ended
};

}  // namespace clawdforge
