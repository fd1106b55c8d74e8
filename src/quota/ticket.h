// Ticket is the right to do one piece of work, given by Quota. Its holder keeps it for as long as
// the work lives: until the last process has ended, where there is one. Dropping it gives all back:
// the place, the app's share, and the trial of a shut breaker. Io thread only; the Quota outlives
// it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/async/async.h"
#include "quota/agent_breakers.h"
#include "quota/app_tally.h"
#include "quota/budgets/ask_metrics.h"
#include "quota/budgets/ask_rates.h"
#include "quota/budgets/budgets.h"
#include "quota/budgets/limit_notice.h"
#include "quota/pool.h"

namespace clawdforge {

class LoginGate;

class Ticket {
 public:
  // Returns when the work may start. Once; the ticket stays where it is meanwhile. An error means
  // that the work must not start: Errc::unavailable "queue_full" when another app needed the place
  // in the queue more, "login_renewing", "login_unreachable" or "agent_not_logged_in" when the
  // agent's login is not good in time; the agent's own failure when its breaker has shut meanwhile;
  // Errc::gone "cancelled" after withdraw(); Errc::over_quota "budget_exhausted", before any wait.
  Async<void> ready();

  // After ready(), for work that has waited since: another ask may have shut the agent's breaker
  // meanwhile. Then the work must not start; it says nothing about its agent.
  std::optional<Failure> refused_since();

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

  // What the work has reserved of budgets is given back by its settling, under this id; empty: it
  // has reserved nothing. Once. Without a call it is given back with the ticket.
  std::string hand_over_reservation() {
    return reservation_.is_held() ? reservation_.hand_over() : "";
  }
  bool has_reservation() const { return reservation_.is_held(); }
  // What an ask has used: for the metrics, and the estimates of the next ones.
  void note(const AskUsage& used) const {
    if (metrics_ != nullptr) metrics_->note_used(used);
    if (budgets_ != nullptr) budgets_->note(used);
  }
  // What is left of its budgets in dollars, in billionths; none: it has none of those.
  std::optional<std::int64_t> nano_usd_left() const { return reservation_.nano_usd_left(); }
  // What its caller is told of the app's limits.
  LimitNotice notice(TimePoint now) const {
    return notice_of(reservation_.states(), reservation_.amounts(), rate_, now);
  }

 private:
  friend class Quota;
  Ticket() = default;

  Async<void> reserve();
  // None: it may start.
  Task<std::optional<Failure>> await_place();
  // An ask that was refused does not count.
  void give_rate_back();
  std::optional<Failure> breaker_refusal() const;
  // Why the agent's login is not good, where a wait would not help; none: it may be good soon.
  std::optional<Failure> login_refusal() const;
  // Waits for it at most kLoginHoldMax. None: it is good.
  Task<std::optional<Failure>> await_login();

  AskMetrics* metrics_ = nullptr;  // null: the work is not an ask
  Budgets* budgets_ = nullptr;     // null: the work has no budget
  Estimates::Key key_;             // whose ask it is, and of the budgets' estimates
  std::vector<Budget> app_budgets_;
  Reservation reservation_;            // from ready() on
  std::optional<RateState> rate_;      // of an app that has one
  AskRates* rates_ = nullptr;          // where the ask is counted; null: its app has no rate
  AppShare share_;                     // of what the app may have unanswered
  std::unique_ptr<Slot> slot_;         // null: the work needs no place
  AgentBreakers* breakers_ = nullptr;  // null: the work does not ask them
  LoginGate* logins_ = nullptr;        // null: it needs no login that is kept
  std::chrono::steady_clock::time_point login_seen_at_;  // when that was last found good
  bool is_withdrawn_ = false;
  AgentBreakers::Model model_;
  // A turn minds, and tells, only that the allowance is used up. A session's agent may have
  // another login than the program of runs, and a plain 429 need not stop a conversation.
  bool minds_limits_alone_ = false;
  std::optional<AgentBreakers::Pass> pass_;  // from ready() to settle()
};

}  // namespace clawdforge
