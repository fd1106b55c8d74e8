// Unremoved is what was to go from the disk and could not: names that are tried again with
// each sweep. Belongs to the disk's thread, but for count(), which any thread may ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace clawdforge {

// Those over it wait for the next start.
inline constexpr std::size_t kUnremovedMax = 10'000;

class Unremoved {
 public:
  void add(const std::string& name) {
    if (names_.size() < kUnremovedMax) names_.insert(name);
    count_.store(names_.size(), std::memory_order_relaxed);
  }
  void remove(const std::string& name) {
    names_.erase(name);
    count_.store(names_.size(), std::memory_order_relaxed);
  }
  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }
  std::size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::set<std::string> names_;
  std::atomic<std::size_t> count_ = 0;
};

}  // namespace clawdforge
