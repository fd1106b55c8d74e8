#include "quota/ticket.h"

#include <chrono>
#include <utility>

namespace clawdforge {
using std::chrono::steady_clock;

Async<void> Ticket::ready() {
  if (budgets_ != nullptr) {
    auto reserved = co_await budgets_->reserve(key_, app_budgets_);
    if (!reserved) {
      if (metrics_ != nullptr && reserved.error().kind == Errc::over_quota) {
        metrics_->note_refused(std::get<0>(key_).str(), reserved.error().code);
      }
      co_return std::unexpected(std::move(reserved.error()));
    }
    reservation_ = std::move(*reserved);
  }
  if (slot_) {
    co_await slot_->settled();
    if (slot_->is_displaced()) co_return Pool::full();
    if (!slot_->is_granted()) {
      co_return fail(Errc::gone, "cancelled", "The work was given up while it waited.");
    }
  }
  if (breakers_ == nullptr) co_return Result<void>{};
  // Asked again: another run may have shut it while this one waited.
  if (auto refusal = breakers_->refusal(model_, steady_clock::now())) {
    co_return std::unexpected(std::move(*refusal));
  }
  pass_ = breakers_->let_through(model_);
  co_return Result<void>{};
}

void Ticket::withdraw() {
  if (slot_) slot_->withdraw();
}

void Ticket::settle(std::optional<Failure>& failure) {
  if (pass_) pass_->settle(failure, steady_clock::now());
  pass_.reset();
}

void Ticket::answered() {
  share_ = AppShare();
  if (slot_) slot_->expect_end();
}

}  // namespace clawdforge
