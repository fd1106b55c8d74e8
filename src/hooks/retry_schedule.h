// When a delivery that failed is tried again, and when it is given up. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace clawdforge {

struct RetrySchedule {
  // After the first attempt, the second and so on; the last one holds for all that follow.
  std::vector<std::chrono::seconds> pauses;
  std::chrono::seconds give_up_after{};  // from when on it is tried

  // After `attempts` attempts, at least one, of which the last failed at `now`. None: it is over.
  std::optional<TimePoint> next(std::int64_t attempts, TimePoint begun_at, TimePoint now) const {
    if (pauses.empty()) return std::nullopt;
    const auto last = static_cast<std::int64_t>(pauses.size()) - 1;
    const auto at = static_cast<std::size_t>(std::clamp<std::int64_t>(attempts - 1, 0, last));
    const TimePoint next_at = now + pauses[at];
    if (next_at > begun_at + give_up_after) return std::nullopt;
    return next_at;
  }
};

}  // namespace clawdforge
