#include "base/limits/byte_budget.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

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

bool ByteHold::fits(std::size_t bytes) const {
  return budget_ == nullptr || budget_->fit(owner_, bytes_, bytes) == Fit::fits;
}

void ByteHold::release() {
  // Fewer always fit.
  if (bytes_ > 0) static_cast<void>(resize(0));
}

void ByteHold::take_over(ByteHold& other) {
  if (&other == this || other.bytes_ == 0) return;
  if (budget_ == nullptr) {
    *this = std::move(other);
    return;
  }
  assert(other.budget_ == budget_ && other.owner_ == owner_);
  bytes_ += std::exchange(other.bytes_, 0);
}

ByteHold ByteHold::split(std::size_t bytes) {
  ByteHold part;
  if (budget_ == nullptr) return part;
  part = budget_->open(owner_);
  part.bytes_ = std::min(bytes, bytes_);
  bytes_ -= part.bytes_;
  return part;
}

bool ByteHold::claim_growth() {
  if (budget_ == nullptr || is_growing_) return true;
  is_growing_ = budget_->growing_.insert(owner_).second;
  return is_growing_;
}

void ByteHold::end_growth() {
  if (std::exchange(is_growing_, false)) budget_->growing_.erase(owner_);
}

bool ByteHold::could_hold(std::size_t bytes) const {
  return budget_ == nullptr || bytes <= budget_->one_thing_max();
}

ByteBudget::ByteBudget(Limits limits, Metrics& metrics)
    : limits_(limits),
      shown_(metrics.gauge("clawdforge_memory_held_bytes",
                           "Bodies, unsent answers, agents' messages and events in memory.")),
      refused_(metrics.counter("clawdforge_memory_refused_total",
                               "What found no place in the memory budget.")) {}

ByteBudget::~ByteBudget() { assert(held_ == 0); }

std::size_t ByteBudget::held_by(std::string_view owner) const {
  const auto found = by_owner_.find(owner);
  return found == by_owner_.end() ? 0 : found->second;
}

Fit ByteBudget::fit(const std::string& owner, std::size_t before, std::size_t after) const {
  if (after <= before) return Fit::fits;
  const std::size_t others = held_by(owner) - before;
  const std::size_t share_max =
      others > limits_.share_bytes_max ? limits_.share_bytes_max : one_thing_max();
  if (others + after > share_max) return Fit::over_share;
  return held_ - before + after > limits_.bytes_max ? Fit::over_budget : Fit::fits;
}

Fit ByteBudget::change(const std::string& owner, std::size_t before, std::size_t after) {
  if (const Fit result = fit(owner, before, after); result != Fit::fits) {
    refused_.increment();
    return result;
  }
  held_ = held_ - before + after;
  shown_.set(static_cast<std::int64_t>(held_));
  const auto found = by_owner_.try_emplace(owner, 0).first;
  found->second = found->second - before + after;
  if (found->second == 0) by_owner_.erase(found);
  return Fit::fits;
}

}  // namespace clawdforge
