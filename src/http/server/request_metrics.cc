#include "http/server/request_metrics.h"

#include <string>

namespace clawdforge {
namespace {

Labels labels_of(const Route* route) {
  return {{"method", route == nullptr ? "" : std::string(route->method)},
          {"route", route == nullptr ? "" : shown_pattern(route->pattern)}};
}

}  // namespace

Counter& RequestMetrics::counter_of(Series& series, const Route* route, int status) {
  for (const auto& [known, counter] : series.by_status) {
    if (known == status) return *counter;
  }
  Labels labels = labels_of(route);
  labels["status"] = std::to_string(status);
  Counter& counter =
      metrics_.counter("clawdforge_http_requests_total", "Answered requests.", labels);
  series.by_status.emplace_back(status, &counter);
  return counter;
}

void RequestMetrics::count(const Route* route, int status, double seconds) {
  const std::size_t index = route == nullptr ? 0 : route->index + 1;
  if (index >= series_.size()) series_.resize(index + 1);
  Series& series = series_[index];
  if (series.durations == nullptr) {
    series.durations =
        &metrics_.durations("clawdforge_http_request_seconds",
                            "Time from a request's first byte to its answer.", labels_of(route));
  }
  series.durations->observe(seconds);
  counter_of(series, route, status).increment();
}

}  // namespace clawdforge
