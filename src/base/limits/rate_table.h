// RateTable limits how many requests a second, and how many bytes, each of many keys may send: a
// token bucket for each. The table has a fixed size and no allocation; a key that finds its part of
// the table full takes the place of the one that was quiet for longest, which then begins with a
// full allowance again. Io thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace clawdforge {

class RateTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Rate {
    double per_second = 0;
    double burst = 0;  // what may come at once
  };

  RateTable(Rate requests, Rate bytes);

  // Counts one request of `key`. Zero: it may go on; else for how long to wait. A key of which many
  // callers hide counts for less: `weight` below 1.
  std::chrono::seconds take(std::uint64_t key, double weight, Time now);
  // Counts bytes that have come. More than the allowance makes the next request wait.
  void add_bytes(std::uint64_t key, double bytes, Time now);

 private:
  static constexpr std::size_t kRateKeysMax = 4096;
  static constexpr std::size_t kWays = 8;  // places that a key may have
  struct Record {
    std::uint64_t key = 0;
    Time at;              // when it was last counted; the epoch: free
    double requests = 0;  // not yet forgotten
    double bytes = 0;     // likewise
  };

  Record& record_of(std::uint64_t key, Time now);

  const Rate requests_;
  const Rate bytes_;
  std::vector<Record> records_;
};

// Where the bytes of a request are counted. Plain values: making one costs nothing.
class ByteMeter {
 public:
  void count_for(RateTable& table, std::uint64_t key, double weight) {
    entries_[used_++ % entries_.size()] = {&table, key, weight};
  }
  void add(std::size_t bytes, RateTable::Time now) const {
    for (const Entry& entry : entries_) {
      if (entry.table == nullptr) continue;
      entry.table->add_bytes(entry.key, static_cast<double>(bytes) * entry.weight, now);
    }
  }

 private:
  struct Entry {
    RateTable* table = nullptr;
    std::uint64_t key = 0;
    double weight = 1;
  };
  std::array<Entry, 2> entries_;  // the address and the app
  std::size_t used_ = 0;
};

}  // namespace clawdforge
