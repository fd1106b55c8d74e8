// ByteBudget bounds the memory that callers and agents can make the gateway hold: request bodies,
// unsent answers, half lines of agents. It knows owners (apps) by name and bounds all of them
// together, and each one. A ByteHold is a part of the budget; dropping it gives the bytes back. Io
// thread only. The budget outlives its holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/telemetry/metrics.h"

namespace clawdforge {

class ByteBudget;

// Whether bytes found a place, and if not, whose limit was in the way.
enum class Fit { fits, over_share, over_budget };

// What callers are told, wherever it is noticed.
inline constexpr std::string_view kOverShareMessage =
    "Too many bytes of yours are in requests and answers already; wait for one of them to end.";
inline constexpr std::string_view kOverBudgetMessage =
    "The gateway has no memory for this at the moment; try again shortly.";
// Errc::over_quota "too_many_bytes" or Errc::unavailable "memory_budget"; nothing if it fits.
Result<void> refused_by(Fit fit);

class ByteHold {
 public:
  ByteHold() = default;  // of no budget: everything fits
  ByteHold(ByteHold&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        owner_(std::move(other.owner_)),
        bytes_(std::exchange(other.bytes_, 0)),
        is_growing_(std::exchange(other.is_growing_, false)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    if (this == &other) return *this;
    release();
    end_growth();
    budget_ = std::exchange(other.budget_, nullptr);
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, 0);
    is_growing_ = std::exchange(other.is_growing_, false);
    return *this;
  }
  ~ByteHold() {
    release();
    end_growth();
  }

  // From now on it holds `bytes`. Fewer than before always fit. If they do not fit nothing changes.
  [[nodiscard]] Fit resize(std::size_t bytes);
  void release();
  bool fits(std::size_t bytes) const;  // resize() would fit
  // What `other` holds, of the same budget and owner, is held by this one from now on.
  void take_over(ByteHold& other);
  // A hold of its own for at most `bytes` of these.
  ByteHold split(std::size_t bytes);
  // The right to grow, which one hold of each owner may have at a time: two halves of large
  // things would else wait for each other's memory. It ends with end_growth() and with the hold.
  bool claim_growth();
  void end_growth();
  // Whether so many would fit if their owner and all others held nothing else.
  bool could_hold(std::size_t bytes) const;
  std::size_t bytes() const { return bytes_; }

 private:
  friend class ByteBudget;
  ByteHold(ByteBudget& budget, std::string_view owner) : budget_(&budget), owner_(owner) {}

  ByteBudget* budget_ = nullptr;
  std::string owner_;
  std::size_t bytes_ = 0;
  bool is_growing_ = false;
};

class ByteBudget {
 public:
  struct Limits {
    std::size_t bytes_max = 0;        // of all owners together
    std::size_t share_bytes_max = 0;  // of one of them
  };

  ByteBudget(Limits limits, Metrics& metrics);
  ~ByteBudget();
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // A hold of nothing yet, which costs nothing.
  ByteHold open(std::string_view owner) { return {*this, owner}; }

  std::size_t held() const { return held_; }
  std::size_t held_by(std::string_view owner) const;

 private:
  friend class ByteHold;
  std::size_t one_thing_max() const {
    return std::max(limits_.share_bytes_max, limits_.bytes_max / 2);
  }
  // One large thing must be possible, whatever small ones are there. So an owner whose other holds
  // are within its share may come to half of the budget; above its share it gets nothing more.
  Fit fit(const std::string& owner, std::size_t before, std::size_t after) const;
  Fit change(const std::string& owner, std::size_t before, std::size_t after);

  const Limits limits_;
  std::size_t held_ = 0;
  std::map<std::string, std::size_t, std::less<>> by_owner_;  // of those who hold any
  std::set<std::string> growing_;                             // owners
  Gauge& shown_;
  Counter& refused_;
};

}  // namespace clawdforge
