#include "base/telemetry/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace clawdforge {
namespace {

// {a="b",c="d"}, or nothing. `last` is a label that is already rendered.
std::string rendered(const Labels& labels, std::string_view last = {}) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += text.empty() ? "{" : ",";
    text.append(name).append("=\"");
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    text += '"';
  }
  if (!last.empty()) text.append(text.empty() ? "{" : ",").append(last);
  if (!text.empty()) text += '}';
  return text;
}

void append_head(std::string& out, const std::string& name, const std::string& help,
                 std::string_view type) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void append_series(std::string& out, const std::string& name, const Labels& labels,
                   std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "{}{} {}\n", name, rendered(labels), value);
}

void append_histogram(std::string& out, const std::string& name, const Labels& labels,
                      const Histogram& histogram) {
  const auto counts = histogram.cumulated();
  auto to = std::back_inserter(out);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_last = i == Histogram::kBounds.size();
    const std::string bound =
        is_last ? R"(le="+Inf")" : fmt::format(R"(le="{}")", Histogram::kBounds[i]);
    fmt::format_to(to, "{}_bucket{} {}\n", name, rendered(labels, bound), counts[i]);
  }
  fmt::format_to(to, "{}_sum{} {}\n", name, rendered(labels), histogram.sum_seconds());
  fmt::format_to(to, "{}_count{} {}\n", name, rendered(labels), counts.back());
}

}  // namespace

void Histogram::observe(double seconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_nanoseconds_.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

std::array<std::int64_t, Histogram::kBounds.size() + 1> Histogram::cumulated() const {
  std::array<std::int64_t, kBounds.size() + 1> totals{};
  std::int64_t total = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    totals[i] = total;
  }
  return totals;
}

double Histogram::sum_seconds() const {
  return static_cast<double>(sum_nanoseconds_.load(std::memory_order_relaxed)) / 1e9;
}

Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = counters_[name];
  family.help = help;
  return family.series[labels];
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = gauges_[name];
  family.help = help;
  return family.series[labels];
}

Histogram& Metrics::durations(const std::string& name, const std::string& help,
                              const Labels& labels) {
  auto& family = histograms_[name];
  family.help = help;
  return family.series[labels];
}

std::string Metrics::render() const {
  std::string out;
  for (const auto& [name, family] : counters_) {
    append_head(out, name, family.help, "counter");
    for (const auto& [labels, counter] : family.series) {
      append_series(out, name, labels, counter.value());
    }
  }
  for (const auto& [name, family] : gauges_) {
    append_head(out, name, family.help, "gauge");
    for (const auto& [labels, gauge] : family.series) {
      append_series(out, name, labels, gauge.value());
    }
  }
  for (const auto& [name, family] : histograms_) {
    append_head(out, name, family.help, "histogram");
    for (const auto& [labels, histogram] : family.series) {
      append_histogram(out, name, labels, histogram);
    }
  }
  return out;
}

}  // namespace clawdforge
