#include "quota/ticket.h"

#include <chrono>
#include <utility>

#include "custody/login_gate.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kKeptLoginWait{3};

bool is_limit(const Failure& failure) {
  return failure.cause == Cause::account_limit || failure.cause == Cause::model_limit;
}

Failure given_up() {
  return fail(Errc::gone, "cancelled", "The work was given up while it waited.").error();
}

}  // namespace

std::optional<Failure> Ticket::login_refusal() const {
  if (logins_ == nullptr) return std::nullopt;
  auto refusal = logins_->refusal(model_.first);
  if (!refusal || refusal->may_wait) return std::nullopt;
  return std::move(refusal->failure);
}

Task<std::optional<Failure>> Ticket::await_login() {
  if (logins_ == nullptr) co_return std::nullopt;
  const auto end = steady_clock::now() + kLoginHoldMax;
  for (;;) {
    login_seen_at_ = steady_clock::now();
    auto refusal = logins_->refusal(model_.first);
    if (!refusal) co_return std::nullopt;
    if (!refusal->may_wait || login_seen_at_ >= end) co_return std::move(refusal->failure);
    logins_->note_waiting(1);
    co_await logins_->changed().wait_until(end);
    logins_->note_waiting(-1);
    if (is_withdrawn_) co_return given_up();
  }
}

Async<void> Ticket::reserve() {
  auto reserved = co_await budgets_->reserve(key_, app_budgets_, rate_);
  if (!reserved) {
    if (metrics_ != nullptr && reserved.error().kind == Errc::over_quota) {
      const auto& [app, agent, model] = key_;
      metrics_->note_refused(app, agent, model, reserved.error().code);
    }
    co_return std::unexpected(std::move(reserved.error()));
  }
  reservation_ = std::move(*reserved);
  co_return Result<void>{};
}

Task<std::optional<Failure>> Ticket::await_place() {
  if (slot_) {
    co_await slot_->settled();
    if (slot_->is_displaced()) co_return Pool::full().error();
    if (!slot_->is_granted()) {
      co_return given_up();
    }
  }
  if (auto refusal = co_await await_login()) co_return refusal;
  if (breakers_ == nullptr) co_return std::nullopt;
  // Asked again: another run may have shut it while this one waited.
  if (auto refusal = breaker_refusal()) co_return refusal;
  pass_ = breakers_->let_through(model_);
  co_return std::nullopt;
}

Async<void> Ticket::ready() {
  // First, so that no budget is held by work that waits for a login.
  if (auto refusal = co_await await_login()) {
    give_rate_back();
    co_return std::unexpected(std::move(*refusal));
  }
  if (budgets_ != nullptr) {
    auto reserved = co_await reserve();
    if (!reserved) {
      give_rate_back();
      co_return reserved;
    }
  }
  auto refusal = co_await await_place();
  if (!refusal) co_return Result<void>{};
  give_rate_back();
  tell(*refusal, notice(SystemClock().now()));
  co_return std::unexpected(std::move(*refusal));
}

std::optional<Failure> Ticket::breaker_refusal() const {
  auto refusal = breakers_->refusal(model_, steady_clock::now());
  if (refusal && minds_limits_alone_ && !is_limit(*refusal)) return std::nullopt;
  return refusal;
}

void Ticket::give_rate_back() {
  if (rates_ != nullptr) rates_->give_back(std::get<0>(key_).str());
  rates_ = nullptr;
}

std::optional<Failure> Ticket::refused_since() {
  if (!pass_ || pass_->is_trial()) return std::nullopt;
  auto refusal = breaker_refusal();
  if (refusal) pass_.reset();
  return refusal;
}

void Ticket::withdraw() {
  is_withdrawn_ = true;
  if (slot_) slot_->withdraw();
  if (logins_ != nullptr) logins_->changed().notify_all();
}

void Ticket::settle(std::optional<Failure>& failure) {
  // One that is kept is mended by its keeper; a run that tries for the others is of no use.
  if (logins_ != nullptr && failure && failure->cause == Cause::login &&
      logins_->keeps(model_.first)) {
    if (failure->retry_after.count() == 0) failure->retry_after = kKeptLoginWait;
    logins_->note_refused(model_.first, login_seen_at_);
    pass_.reset();
    return;
  }
  const bool is_told = !minds_limits_alone_ || !failure || is_limit(*failure);
  if (pass_ && is_told) pass_->settle(failure, steady_clock::now());
  pass_.reset();
}

void Ticket::answered() {
  share_ = AppShare();
  if (slot_) slot_->expect_end();
}

}  // namespace clawdforge
