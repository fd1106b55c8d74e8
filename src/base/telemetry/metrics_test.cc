#include "base/telemetry/metrics.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(Metrics, RendersCountersAndGaugesWithTheirLabels) {
  Metrics metrics;
  metrics.counter("asked_total", "Questions.", {{"b", "x\"y"}, {"a", "1"}}).increment(3);
  metrics.gauge("open", "Doors.").set(-2);
  EXPECT_EQ(metrics.render(),
            "# HELP asked_total Questions.\n# TYPE asked_total counter\n"
            "asked_total{a=\"1\",b=\"x\\\"y\"} 3\n"
            "# HELP open Doors.\n# TYPE open gauge\nopen -2\n");
}

TEST(Metrics, GivesTheSameSeriesForTheSameNameAndLabels) {
  Metrics metrics;
  Counter& first = metrics.counter("n", "h", {{"a", "1"}});
  for (int i = 0; i < 100; ++i) metrics.counter("n", "h", {{"a", std::to_string(i)}});
  EXPECT_EQ(&first, &metrics.counter("n", "h", {{"a", "1"}}));
}

TEST(GaugeShare, AddsUpWithOthersAndIsTakenBack) {
  Gauge gauge;
  GaugeShare stays(&gauge);
  stays.set(5);
  {
    GaugeShare goes(&gauge);
    goes.set(100);
    goes.set(30);
    EXPECT_EQ(gauge.value(), 35);
    stays.set(2);
    EXPECT_EQ(gauge.value(), 32);
  }
  EXPECT_EQ(gauge.value(), 2);
  GaugeShare unseen(nullptr);
  unseen.set(7);
}

TEST(Histogram, CountsUpToEachBound) {
  Metrics metrics;
  Histogram& histogram = metrics.durations("took_seconds", "Time.", {{"r", "x"}});
  histogram.observe(0.0001);  // a bound belongs to its bucket
  histogram.observe(0.2);
  histogram.observe(100);
  const auto counts = histogram.cumulated();
  EXPECT_EQ(counts.front(), 0);
  EXPECT_EQ(counts[1], 1);
  EXPECT_EQ(counts[11], 2);
  EXPECT_EQ(counts.back(), 3);
  const std::string text = metrics.render();
  EXPECT_NE(text.find("took_seconds_bucket{r=\"x\",le=\"0.25\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{r=\"x\",le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("took_seconds_count{r=\"x\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("took_seconds_sum{r=\"x\"} 100.2001\n"), std::string::npos);
}

}  // namespace
}  // namespace clawdforge
