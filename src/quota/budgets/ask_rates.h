// AskRates holds each app to its asks a minute: a bucket of that many, refilled evenly. Io thread
// only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace clawdforge {

// With one more, those that are full again are forgotten.
inline constexpr std::size_t kAskRatesMax = 10'000;

class AskRates {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Answer {
    std::chrono::seconds wait{};  // zero: the ask is counted, and may go on
    std::int64_t left = 0;        // that may come at once after it
  };

  Answer take(const std::string& app, std::int64_t per_minute, Time now);
  // What take() would find.
  std::int64_t left(const std::string& app, std::int64_t per_minute, Time now) const;
  // An ask that was counted did not start.
  void give_back(const std::string& app);

 private:
  struct Bucket {
    double asks = 0;  // that may come now
    double per_minute = 0;
    Time at;
  };
  static double asks_at(const Bucket& bucket, Time now);

  std::map<std::string, Bucket> buckets_;
};

}  // namespace clawdforge
