// What a benchmark has measured of one thing, and its median and such.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace clawdforge {

using SteadyClock = std::chrono::steady_clock;

class Figures {
 public:
  void add(double value) { values_.push_back(value); }
  void add_since(SteadyClock::time_point begin) {
    add(std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count());
  }
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
