#include "quota/rate_limits.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr double kRequestBurstSeconds = 2;
constexpr double kByteBurstSeconds = 4;
// What a request counts for an address of which many callers may hide.
constexpr double kSharedAddressWeight = 0.05;

RateTable::Rate rate_of(double per_second, double burst_seconds) {
  return {.per_second = per_second, .burst = per_second * burst_seconds};
}

// IPv6 callers own whole networks: the /64 counts as one. So each key is one address or network.
std::uint64_t key_of(const IpAddress& address) {
  const auto& bytes = address.bytes();
  const auto first = address.is_v4() ? bytes.begin() + 8 : bytes.begin();
  std::uint64_t key = 0;
  for (auto byte = first; byte != first + 8; ++byte) key = key << 8U | *byte;
  return key;
}

std::uint64_t key_of(const App& app) { return std::hash<AppName>()(app.name); }

}  // namespace

class RateLimits::Connection {
 public:
  Connection(RateLimits& limits, std::uint64_t key) : limits_(limits), key_(key) {
    ++limits_.connections_[key_];
  }
  ~Connection() {
    const auto found = limits_.connections_.find(key_);
    if (--found->second == 0) limits_.connections_.erase(found);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  RateLimits& limits_;
  const std::uint64_t key_;
};

RateLimits::RateLimits(Options options, Metrics& metrics)
    : options_(std::move(options)),
      apps_(rate_of(options_.app_requests_max, kRequestBurstSeconds),
            rate_of(options_.app_bytes_max, kByteBurstSeconds)),
      addresses_(rate_of(options_.address_requests_max, kRequestBurstSeconds),
                 rate_of(options_.address_bytes_max, kByteBurstSeconds)),
      refused_(metrics.counter("clawdforge_http_rate_refused_total",
                               "Requests and connections over the rate of an app or address.")) {}

RateLimits::~RateLimits() { assert(connections_.empty()); }

bool RateLimits::is_shared(const IpAddress& address) const {
  return address.is_loopback() || std::ranges::any_of(options_.proxies, [&](const Cidr& range) {
           return range.contains(address);
         });
}

Result<void> RateLimits::refused(std::chrono::seconds wait) {
  if (wait.count() == 0) return {};
  refused_.increment();
  return fail_for_now(Errc::over_quota, "too_many_requests",
                      "Too many requests or bytes come at once; wait as long as Retry-After says.",
                      wait);
}

Result<void> RateLimits::take(const IpAddress& origin, ByteMeter& meter) {
  const double weight = is_shared(origin) ? kSharedAddressWeight : 1;
  const std::uint64_t key = key_of(origin);
  meter.count_for(addresses_, key, weight);
  return refused(addresses_.take(key, weight, RateTable::Time::clock::now()));
}

Result<void> RateLimits::take(const App& app, ByteMeter& meter) {
  const std::uint64_t key = key_of(app);
  meter.count_for(apps_, key, 1);
  return refused(apps_.take(key, 1, RateTable::Time::clock::now()));
}

std::optional<std::shared_ptr<const void>> RateLimits::admit_connection(const IpAddress& peer) {
  ByteMeter unused;
  if (!take(peer, unused)) return std::nullopt;
  if (is_shared(peer)) return nullptr;
  if (connections_of(peer) >= options_.address_connections_max) {
    refused_.increment();
    return std::nullopt;
  }
  return std::make_shared<const Connection>(*this, key_of(peer));
}

std::size_t RateLimits::connections_of(const IpAddress& peer) const {
  const auto found = connections_.find(key_of(peer));
  return found == connections_.end() ? 0 : found->second;
}

}  // namespace clawdforge
