// Ticket is the right to do one piece of work, given by Quota. Its holder keeps it for as long as
// the work lives: until the last process has ended, where there is one. Dropping it gives all back:
// the place, the app's share, and the trial of a shut breaker. Io thread only; the Quota outlives
// it.
#pragma once

#include <memory>
#include <optional>

#include "base/async/async.h"
#include "quota/agent_breakers.h"
#include "quota/app_tally.h"
#include "quota/pool.h"

namespace clawdforge {

class Ticket {
 public:
  // Returns when the work may start. Once; the ticket stays where it is meanwhile. An error means
  // that the work must not start: Errc::unavailable "queue_full" when another app needed the place
  // in the queue more; the agent's own failure when its breaker has shut meanwhile; Errc::gone
  // "cancelled" after withdraw().
  Async<void> ready();

  // Its place is granted. Also false for work that needs no place.
  bool has_place() const { return slot_ && slot_->is_granted(); }
  // Ends the wait for a place. A place that is granted stays.
  void withdraw();

  // How the work ended; none is success. A failure that shuts the agent's breaker is told how long
  // to wait. Without a call the work says nothing about its agent.
  void settle(std::optional<Failure>& failure);

  // The caller has its answer, and may ask again: the app's share is given back. The place stays
  // until the ticket is dropped; the next run may wait for it.
  void answered();

 private:
  friend class Quota;
  Ticket() = default;

  AppShare share_;                     // of what the app may have unanswered
  std::unique_ptr<Slot> slot_;         // null: the work needs no place
  AgentBreakers* breakers_ = nullptr;  // null: the work does not ask them
  AgentBreakers::Model model_;
  std::optional<AgentBreakers::Pass> pass_;  // from ready() to settle()
};

}  // namespace clawdforge
