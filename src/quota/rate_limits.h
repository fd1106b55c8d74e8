// RateLimits bounds what each app and each address may send: requests a second, bytes a second, and
// connections of one address. An address counts before any token is looked at, so that requests
// which are refused (401, 404, 413) count as well. Loopback and trusted proxies stand for many
// callers and have a much larger allowance. Io thread only; it outlives the connections it admits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/limits/rate_table.h"
#include "base/net.h"
#include "base/result.h"
#include "base/telemetry/metrics.h"
#include "model/app.h"

namespace clawdforge {

class RateLimits {
 public:
  // Each a second; bursts are a few seconds of them.
  struct Options {
    double app_requests_max = 0;
    double app_bytes_max = 0;
    double address_requests_max = 0;
    double address_bytes_max = 0;
    std::size_t address_connections_max = 0;
    std::vector<Cidr> proxies;  // that stand for many callers, as loopback does
  };

  RateLimits(Options options, Metrics& metrics);
  ~RateLimits();
  RateLimits(const RateLimits&) = delete;
  RateLimits& operator=(const RateLimits&) = delete;

  // Counts a request, and makes `meter` count its body's bytes. Errc::over_quota
  // "too_many_requests".
  Result<void> take(const IpAddress& origin, ByteMeter& meter);
  Result<void> take(const App& app, ByteMeter& meter);

  // For a connection from `peer`: held until it has ended, and counted as a request. None: the
  // address has too many, or makes them too fast.
  std::optional<std::shared_ptr<const void>> admit_connection(const IpAddress& peer);
  std::size_t connections_of(const IpAddress& peer) const;

 private:
  class Connection;

  bool is_shared(const IpAddress& address) const;
  Result<void> refused(std::chrono::seconds wait);

  const Options options_;
  RateTable apps_;
  RateTable addresses_;
  std::map<std::uint64_t, std::size_t> connections_;  // by address, of those that have any
  Counter& refused_;
};

}  // namespace clawdforge
