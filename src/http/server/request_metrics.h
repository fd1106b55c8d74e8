// Counts and times requests, by route and status. Finding a metric by its labels is
// slow, so what was found once is kept: both label sets are small and closed.
#pragma once

#include <utility>
#include <vector>

#include "base/telemetry/metrics.h"
#include "http/message/router.h"

namespace clawdforge {

class RequestMetrics {
 public:
  explicit RequestMetrics(Metrics& metrics) : metrics_(metrics) {}

  // `route` is null where no route was found.
  void count(const Route* route, int status, double seconds);

 private:
  struct Series {
    Histogram* durations = nullptr;
    std::vector<std::pair<int, Counter*>> by_status;  // a handful
  };
  Counter& counter_of(Series& series, const Route* route, int status);

  Metrics& metrics_;
  std::vector<Series> series_;  // by the route's index, after the one for no route
};

}  // namespace clawdforge
