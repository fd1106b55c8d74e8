// What `clawdforge top` shows: the figures of a gateway at two instants, as lines of a screen.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/styled_text.h"
#include "cli/terminal/terminal.h"
#include "cli/top/metrics_text.h"

namespace clawdforge {

struct TopAgent {
  std::string name;
  std::string login;
  std::string version;  // empty: it is not installed
  std::string last;     // what became of its last run
};

struct TopSession {
  std::string id;
  std::string app;
  std::string agent;
  std::int64_t turn = 0;
  std::int64_t busy_seconds = 0;
};

// All that was asked of the gateway at one instant.
struct TopSnapshot {
  double at = 0;  // seconds
  std::string version;
  std::map<std::string, double> figures;  // of the metrics, by name
  std::map<double, double> latency;       // asks that took at most so many seconds
  double asks = 0;
  std::vector<TopAgent> agents;
  std::vector<TopSession> busy;
};

// The figures that the screen needs.
void read_metrics(const MetricsText& metrics, TopSnapshot& snapshot);

// The time within which this share of the asks between two instants was answered; none: nothing
// was asked.
std::optional<double> quantile(const TopSnapshot& before, const TopSnapshot& now, double share);

StyledLines top_lines(const TopSnapshot& before, const TopSnapshot& now, const std::string& url,
                      const std::string& trouble, const TerminalSize& size);

}  // namespace clawdforge
