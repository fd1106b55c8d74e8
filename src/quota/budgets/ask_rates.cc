#include "quota/budgets/ask_rates.h"

#include <algorithm>
#include <cmath>

namespace clawdforge {

double AskRates::asks_at(const Bucket& bucket, Time now) {
  const std::chrono::duration<double> passed = now - bucket.at;
  return std::min(bucket.per_minute, bucket.asks + passed.count() * bucket.per_minute / 60);
}

std::int64_t AskRates::left(const std::string& app, std::int64_t per_minute, Time now) const {
  const auto found = buckets_.find(app);
  if (found == buckets_.end()) return per_minute;
  return std::min(per_minute, static_cast<std::int64_t>(asks_at(found->second, now)));
}

AskRates::Answer AskRates::take(const std::string& app, std::int64_t per_minute, Time now) {
  auto found = buckets_.find(app);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kAskRatesMax) {
      std::erase_if(buckets_, [&](const auto& entry) {
        return asks_at(entry.second, now) >= entry.second.per_minute;
      });
    }
    const auto full = static_cast<double>(per_minute);
    found = buckets_.emplace(app, Bucket{full, full, now}).first;
  }
  Bucket& bucket = found->second;
  bucket.asks = asks_at(bucket, now);
  bucket.at = now;
  if (bucket.per_minute != static_cast<double>(per_minute)) {
    bucket.per_minute = static_cast<double>(per_minute);
    bucket.asks = std::min(bucket.asks, bucket.per_minute);
  }
  if (bucket.asks < 1) {
    const double seconds = (1 - bucket.asks) * 60 / bucket.per_minute;
    // At least one: zero would mean that it may go on.
    return {std::chrono::seconds(
                std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(seconds - 1e-9)), 1)),
            0};
  }
  bucket.asks -= 1;
  return {{}, static_cast<std::int64_t>(bucket.asks)};
}

void AskRates::give_back(const std::string& app) {
  const auto found = buckets_.find(app);
  if (found != buckets_.end()) {
    found->second.asks = std::min(found->second.per_minute, found->second.asks + 1);
  }
}

}  // namespace clawdforge
