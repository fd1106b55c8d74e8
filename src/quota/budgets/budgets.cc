#include "quota/budgets/budgets.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "ledger/usage/budget_rows.h"
#include "quota/budgets/limit_notice.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUnreleasedMax = 10'000;  // those over it wait for the next start
constexpr std::chrono::seconds kReleasePause{1};

bool has_amounts(const std::vector<Budget>& budgets) {
  return std::ranges::any_of(budgets,
                             [](const Budget& budget) { return budget.unit != BudgetUnit::asks; });
}

}  // namespace

Reservation::Reservation(Budgets& budgets, ReservationRequest request,
                         std::vector<BudgetState> states)
    : budgets_(&budgets),
      id_(std::move(request.id)),
      app_(std::move(request.app)),
      amounts_(request.estimate),
      states_(std::move(states)) {}

Reservation::Reservation(Reservation&& other) noexcept
    : budgets_(std::exchange(other.budgets_, nullptr)),
      id_(std::move(other.id_)),
      app_(std::move(other.app_)),
      amounts_(other.amounts_),
      states_(std::move(other.states_)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (budgets_ != nullptr) budgets_->release(std::move(id_), std::move(app_));
  budgets_ = std::exchange(other.budgets_, nullptr);
  id_ = std::move(other.id_);
  app_ = std::move(other.app_);
  amounts_ = other.amounts_;
  states_ = std::move(other.states_);
  return *this;
}

Reservation::~Reservation() {
  if (budgets_ != nullptr) budgets_->release(std::move(id_), std::move(app_));
}

std::string Reservation::hand_over() {
  budgets_ = nullptr;
  return std::move(id_);
}

std::optional<std::int64_t> Reservation::nano_usd_left() const {
  std::optional<std::int64_t> least;
  for (const BudgetState& state : states_) {
    if (state.budget.unit != BudgetUnit::usd) continue;
    const std::int64_t left = state.budget.limit - state.used - state.reserved;
    least = std::min(least.value_or(left), left);
  }
  return least;
}

Budgets::Budgets(IoExecutor executor, BudgetRows& rows, const Clock& clock, IdSource& ids,
                 Options options)
    : executor_(executor),
      rows_(rows),
      clock_(clock),
      ids_(ids),
      options_(std::move(options)),
      estimates_(options_.estimate_min),
      tasks_(executor) {}

Async<Amounts> Budgets::estimate(Estimates::Key key, std::vector<Budget> of_app) {
  if ((has_amounts(of_app) || has_amounts(options_.of_gateway)) && !estimates_.knows(key)) {
    const auto recent = co_await rows_.recent(std::get<0>(key), std::get<1>(key), std::get<2>(key));
    if (!recent) co_return std::unexpected(recent.error());
    if (!estimates_.knows(key)) estimates_.learn(key, *recent);
  }
  co_return estimates_.of(key);
}

Async<Reservation> Budgets::reserve(Estimates::Key key, std::vector<Budget> of_app,
                                    std::optional<RateState> rate) {
  const auto amounts = co_await estimate(key, of_app);
  if (!amounts) co_return std::unexpected(amounts.error());
  ReservationRequest request{.id = ids_.uuid(),
                             .app = std::get<0>(key),
                             .now = clock_.now(),
                             .estimate = *amounts,
                             .of_app = std::move(of_app),
                             .of_gateway = options_.of_gateway};
  auto answer = co_await rows_.reserve(request);
  if (!answer) {
    // It may have been kept after all.
    release(request.id, request.app);
    co_return std::unexpected(std::move(answer.error()));
  }
  if (const auto refused = answer->refused) {
    Failure refusal = budget_refusal(*refused, request.now);
    tell(refusal, notice_of(answer->states, {}, rate, request.now));
    co_return std::unexpected(std::move(refusal));
  }
  co_return Reservation(*this, std::move(request), std::move(answer->states));
}

void Budgets::note(const AskUsage& ask) {
  estimates_.note({ask.app, ask.agent, ask.model}, {.nano_usd = ask.nano_usd,
                                                    .tokens = all_tokens(ask.tokens),
                                                    .asks = 1,
                                                    .agent_ms = ask.agent_ms});
}

void Budgets::release(std::string id, AppName app) {
  if (is_stopping_ || unreleased_ >= kUnreleasedMax) return;  // the next start does it
  ++unreleased_;
  tasks_.spawn(release_until_done(std::move(id), std::move(app)));
}

Task<void> Budgets::release_until_done(std::string id, AppName app) {
  Timer pause(executor_);
  while (!is_stopping_) {
    const auto released = co_await rows_.release(id, app);
    if (released) break;
    pause.expires_after(kReleasePause);
    co_await pause.async_wait(kAwait);
  }
  --unreleased_;
}

Task<void> Budgets::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
}

}  // namespace clawdforge
