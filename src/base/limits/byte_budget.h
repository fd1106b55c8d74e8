// ByteBudget bounds the memory that callers and agents can make the gateway hold: request bodies,
// unsent answers, half lines of agents. It knows owners (apps) by name and bounds all of them
// together, and each one. A ByteHold is a part of the budget; dropping it gives the bytes back. Io
// thread only. The budget outlives its holds.
#pragma once

#include <cstddef>
#include <map>
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
        bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    if (this == &other) return *this;
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~ByteHold() { release(); }

  // From now on it holds `bytes`. Fewer than before always fit. If they do not fit nothing changes.
  [[nodiscard]] Fit resize(std::size_t bytes);
  void release();
  std::size_t bytes() const { return bytes_; }

 private:
  friend class ByteBudget;
  ByteHold(ByteBudget& budget, std::string_view owner) : budget_(&budget), owner_(owner) {}

  ByteBudget* budget_ = nullptr;
  std::string owner_;
  std::size_t bytes_ = 0;
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
  // One large thing must be possible, whatever small ones are there. So an owner whose other holds
  // are within its share may come to half of the budget; above its share it gets nothing more.
  Fit change(const std::string& owner, std::size_t before, std::size_t after);

  const Limits limits_;
  std::size_t held_ = 0;
  std::map<std::string, std::size_t, std::less<>> by_owner_;  // of those who hold any
  Gauge& shown_;
  Counter& refused_;
};

}  // namespace clawdforge
