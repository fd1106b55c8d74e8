#include "cli/top/top_view.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

constexpr std::string_view kText =
    "# HELP x y\nclawdforge_build_info{version=\"1.2\"} 1\nclawdforge_runs_running 2\n"
    "clawdforge_http_request_seconds_bucket{method=\"POST\",route=\"/run\",le=\"0.1\"} 8\n"
    "clawdforge_http_request_seconds_bucket{method=\"POST\",route=\"/run\",le=\"1\"} 10\n"
    "clawdforge_http_request_seconds_bucket{method=\"POST\",route=\"/run\",le=\"+Inf\"} 10\n"
    "clawdforge_http_request_seconds_count{method=\"POST\",route=\"/run\"} 10\n"
    "clawdforge_http_request_seconds_count{method=\"GET\",route=\"/healthz\"} 99\n"
    "broken{a=\"b\nclawdforge_turns_total{state=\"done\"} 3\n";

TEST(MetricsText, ReadsSamplesAndLeavesOutWhatIsBroken) {
  const MetricsText metrics(kText);
  EXPECT_EQ(metrics.sum("clawdforge_runs_running"), 2);
  EXPECT_EQ(metrics.sum("clawdforge_turns_total", {{"state", "done"}}), 3);
  EXPECT_EQ(metrics.sum("clawdforge_turns_total", {{"state", "failed"}}), 0);
  EXPECT_TRUE(metrics.samples("broken").empty());
}

TEST(TopView, ShowsRatesAndLatenciesBetweenTwoLooks) {
  TopSnapshot before;
  TopSnapshot now;
  now.at = 5;
  read_metrics(MetricsText(kText), now);
  EXPECT_EQ(now.asks, 10);
  EXPECT_EQ(quantile(before, now, 0.5), 0.1);
  EXPECT_EQ(quantile(before, now, 0.99), 1);
  EXPECT_EQ(quantile(now, now, 0.5), std::nullopt);
  std::string text;
  for (const StyledText& line : top_lines(before, now, "http://x", "", {80, 24})) {
    text += plain_of(line) + "\n";
  }
  EXPECT_NE(text.find("asks      2.0/s · half within 100 ms · 99 % within 1.0 s"), text.npos)
      << text;
}

TEST(TopView, FitsIntoTheScreen) {
  TopSnapshot now;
  for (int i = 0; i < 40; ++i)
    now.busy.push_back({std::string(36, 'x'), "app\x1b[2J", "demo", i, i});
  now.agents.push_back({"claude", "missing", "2.1", "account_limit"});
  const StyledLines lines = top_lines(now, now, "http://127.0.0.1:8800", "", {80, 24});
  EXPECT_LE(lines.size(), 24U);
  for (const StyledText& line : lines) {
    EXPECT_LE(width_of(line), 79U);
    EXPECT_EQ(plain_of(line).find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace clawdforge
