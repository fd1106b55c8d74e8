#include "base/limits/byte_budget.h"

#include <algorithm>
#include <cassert>
#include <chrono>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kMemoryRetryAfter{1};

}  // namespace

Result<void> refused_by(Fit fit) {
  switch (fit) {
    case Fit::fits:
      break;
    case Fit::over_share:
      return fail_for_now(Errc::over_quota, "too_many_bytes", std::string(kOverShareMessage),
                          kMemoryRetryAfter);
    case Fit::over_budget:
      return fail_for_now(Errc::unavailable, "memory_budget", std::string(kOverBudgetMessage),
                          kMemoryRetryAfter);
  }
  return {};
}

Fit ByteHold::resize(std::size_t bytes) {
  if (budget_ == nullptr || bytes == bytes_) return Fit::fits;
  const Fit fit = budget_->change(owner_, bytes_, bytes);
  if (fit == Fit::fits) bytes_ = bytes;
  return fit;
}

void ByteHold::release() {
  // Fewer always fit.
  if (bytes_ > 0) static_cast<void>(resize(0));
}

ByteBudget::ByteBudget(Limits limits, Metrics& metrics)
    : limits_(limits),
      shown_(metrics.gauge("clawdforge_memory_held_bytes",
                           "Request bodies, unsent answers and half lines of agents in memory.")),
      refused_(metrics.counter("clawdforge_memory_refused_total",
                               "What found no place in the memory budget.")) {}

ByteBudget::~ByteBudget() { assert(held_ == 0); }

std::size_t ByteBudget::held_by(std::string_view owner) const {
  const auto found = by_owner_.find(owner);
  return found == by_owner_.end() ? 0 : found->second;
}

Fit ByteBudget::change(const std::string& owner, std::size_t before, std::size_t after) {
  const auto found = by_owner_.find(owner);
  const std::size_t others = (found == by_owner_.end() ? 0 : found->second) - before;
  if (after > before) {
    const std::size_t share_max = others > limits_.share_bytes_max
                                      ? limits_.share_bytes_max
                                      : std::max(limits_.share_bytes_max, limits_.bytes_max / 2);
    Fit fit = Fit::fits;
    if (held_ - before + after > limits_.bytes_max) fit = Fit::over_budget;
    if (others + after > share_max) fit = Fit::over_share;
    if (fit != Fit::fits) {
      refused_.increment();
      return fit;
    }
  }
  held_ = held_ - before + after;
  shown_.set(static_cast<std::int64_t>(held_));
  if (others + after == 0) {
    by_owner_.erase(found);
  } else if (found == by_owner_.end()) {
    by_owner_.emplace(owner, after);
  } else {
    found->second = others + after;
  }
  return Fit::fits;
}

}  // namespace clawdforge
