// What a benchmark has measured of one thing, and its median and such.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace clawdforge {

using SteadyClock = std::chrono::steady_clock;

inline double microseconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

class Figures {
 public:
  void add(double value) { values_.push_back(value); }
  void add_since(SteadyClock::time_point begin) { add(microseconds_since(begin)); }
  bool empty() const { return values_.empty(); }
  double at(double share) const {
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
  double median() const { return at(0.5); }

 private:
  std::vector<double> values_;
};

}  // namespace clawdforge
