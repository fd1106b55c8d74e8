#include "base/limits/rate_table.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace clawdforge {
namespace {

// Neighbouring addresses go to different parts of the table.
std::size_t mixed(std::uint64_t key) {
  key ^= key >> 33U;
  key *= 0xff51afd7ed558ccdULL;
  key ^= key >> 33U;
  return static_cast<std::size_t>(key);
}

double over(double spent, const auto& rate) { return (spent - rate.burst) / rate.per_second; }

}  // namespace

RateTable::RateTable(Rate requests, Rate bytes)
    : requests_(requests), bytes_(bytes), records_(kRateKeysMax) {}

RateTable::Record& RateTable::record_of(std::uint64_t key, Time now) {
  const std::size_t set = mixed(key) % (kRateKeysMax / kWays);
  const std::span<Record> places = std::span(records_).subspan(set * kWays, kWays);
  Record* quietest = places.data();
  for (Record& record : places) {
    if (record.key == key && record.at != Time()) {
      const double passed = std::chrono::duration<double>(now - record.at).count();
      record.requests = std::max(0.0, record.requests - passed * requests_.per_second);
      record.bytes = std::max(0.0, record.bytes - passed * bytes_.per_second);
      record.at = now;
      return record;
    }
    if (record.at < quietest->at) quietest = &record;
  }
  *quietest = {.key = key, .at = now};
  return *quietest;
}

std::chrono::seconds RateTable::take(std::uint64_t key, double weight, Time now) {
  Record& record = record_of(key, now);
  const double wait =
      std::max(over(record.requests + weight, requests_), over(record.bytes, bytes_));
  if (wait > 0) return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(wait)));
  record.requests += weight;
  return std::chrono::seconds(0);
}

void RateTable::add_bytes(std::uint64_t key, double bytes, Time now) {
  record_of(key, now).bytes += bytes;
}

}  // namespace clawdforge
