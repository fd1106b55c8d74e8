// Demand says how many agents of one kind are worth keeping ready: as many as were started together
// at the busiest moment of the last minutes. Pure; it is told the time. Io thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace clawdforge {

// Starts within it count as simultaneous: about as long as another spare takes to become ready.
inline constexpr std::chrono::seconds kStartsTogether{1};
// After so long without a start nothing is kept, and so long the busiest moment counts.
inline constexpr std::chrono::minutes kDemandKept{10};
// Simultaneous starts that are told apart; more count as this many.
inline constexpr std::size_t kStartsCountedMax = 64;

class Demand {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // An agent of this kind is started.
  void note(Time now);
  // How many should be ready; 0: none was started lately.
  std::size_t wanted(Time now) const;
  // None: never.
  std::optional<Time> last_use() const { return last_use_; }

 private:
  static std::int64_t minute_of(Time now);
  // The most that were started together in one minute. A minute's place is used again ten later.
  struct Minute {
    std::int64_t number = -1;
    std::size_t together = 0;
  };

  std::deque<Time> recent_;  // within kStartsTogether
  std::array<Minute, static_cast<std::size_t>(kDemandKept.count())> minutes_;
  std::optional<Time> last_use_;
};

}  // namespace clawdforge
