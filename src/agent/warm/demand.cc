#include "agent/warm/demand.h"

#include <algorithm>

namespace clawdforge {

std::int64_t Demand::minute_of(Time now) {
  return std::chrono::floor<std::chrono::minutes>(now).time_since_epoch().count();
}

void Demand::note(Time now) {
  while (!recent_.empty() && now - recent_.front() > kStartsTogether) recent_.pop_front();
  if (recent_.size() == kStartsCountedMax) recent_.pop_front();
  recent_.push_back(now);
  last_use_ = now;
  const std::int64_t number = minute_of(now);
  Minute& minute = minutes_[static_cast<std::size_t>(number) % minutes_.size()];
  if (minute.number != number) minute = {.number = number};
  minute.together = std::max(minute.together, recent_.size());
}

std::size_t Demand::wanted(Time now) const {
  if (!last_use_ || now - *last_use_ >= kDemandKept) return 0;
  const std::int64_t oldest = minute_of(now) - kDemandKept.count() + 1;
  // The last use may lie in a minute that has just been left out.
  std::size_t most = 1;
  for (const Minute& minute : minutes_) {
    if (minute.number >= oldest) most = std::max(most, minute.together);
  }
  return most;
}

}  // namespace clawdforge
