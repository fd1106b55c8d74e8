// Budgets reserves what each ask may come to use of the budgets of its app and of the gateway, in
// the ledger, before anything of it starts. A Reservation gives itself back unless its ask is
// settled: then the transaction that settles the ask does it. Io thread only. Its owner calls
// stop() and waits for it before it dies; it outlives its reservations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/task_group.h"
#include "base/clock.h"
#include "base/ids.h"
#include "model/limits/ask_usage.h"
#include "model/limits/reservation.h"
#include "quota/budgets/estimates.h"
#include "quota/budgets/limit_notice.h"

namespace clawdforge {

class BudgetRows;
class Budgets;

class Reservation {
 public:
  Reservation() = default;  // of nothing
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  bool is_held() const { return budgets_ != nullptr; }
  // The ask is going to be settled with this id: the settling gives it back. Once.
  std::string hand_over();

  // As it was when it was made.
  const std::vector<BudgetState>& states() const { return states_; }
  const Amounts& amounts() const { return amounts_; }
  // What is left of the budgets in dollars, in billionths. None: there is none of those.
  std::optional<std::int64_t> nano_usd_left() const;

 private:
  friend class Budgets;
  Reservation(Budgets& budgets, ReservationRequest request, std::vector<BudgetState> states);

  Budgets* budgets_ = nullptr;
  std::string id_;
  AppName app_;
  Amounts amounts_;
  std::vector<BudgetState> states_;
};

class Budgets {
 public:
  struct Options {
    std::vector<Budget> of_gateway;
    Amounts estimate_min;  // of an ask whose app has not asked before
  };

  Budgets(IoExecutor executor, BudgetRows& rows, const Clock& clock, IdSource& ids,
          Options options);
  Budgets(const Budgets&) = delete;
  Budgets& operator=(const Budgets&) = delete;

  // Whether an app with these budgets has anything to reserve.
  bool apply_to(const std::vector<Budget>& of_app) const {
    return !of_app.empty() || !options_.of_gateway.empty();
  }

  // Errc::over_quota "budget_exhausted"; Errc::unavailable where the ledger is.
  // The refusal tells what is left, of the app's rate too.
  Async<Reservation> reserve(Estimates::Key key, std::vector<Budget> of_app,
                             std::optional<RateState> rate = std::nullopt);

  // What an ask has really used, for the next estimates.
  void note(const AskUsage& ask);

  Task<void> stop();

 private:
  friend class Reservation;
  Async<Amounts> estimate(Estimates::Key key, std::vector<Budget> of_app);
  void release(std::string id, AppName app);
  Task<void> release_until_done(std::string id, AppName app);

  const IoExecutor executor_;
  BudgetRows& rows_;
  const Clock& clock_;
  IdSource& ids_;
  const Options options_;
  Estimates estimates_;
  std::size_t unreleased_ = 0;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
