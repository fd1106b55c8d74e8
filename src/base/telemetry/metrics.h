// Metrics is the program's register of counters, gauges and histograms, shown at
// /metrics in Prometheus' text format. What is handed out lives as long as the register
// and may be changed from any thread. Label values must come from a small closed set
// (routes, statuses), never from a caller. New series are made on the io thread only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace clawdforge {

class Counter {
 public:
  void increment(std::int64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

class Gauge {
 public:
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

// What one owner adds to a gauge that sums over many owners; taken back when it dies. The
// gauge, if there is one, outlives it. Used by one thread.
class GaugeShare {
 public:
  explicit GaugeShare(Gauge* gauge) : gauge_(gauge) {}
  ~GaugeShare() { set(0); }
  GaugeShare(const GaugeShare&) = delete;
  GaugeShare& operator=(const GaugeShare&) = delete;

  void set(std::size_t amount) {
    const auto now = static_cast<std::int64_t>(amount);
    if (gauge_ != nullptr && now != shown_) gauge_->add(now - shown_);
    shown_ = now;
  }

 private:
  Gauge* const gauge_;
  std::int64_t shown_ = 0;
};

// Durations in seconds, in fixed buckets from 50 microseconds to 10 seconds.
class Histogram {
 public:
  static constexpr std::array<double, 15> kBounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                                     0.0025,  0.005,  0.01,    0.025,  0.05,
                                                     0.1,     0.25,   1,       2.5,    10};
  void observe(double seconds);

  // How many were at most kBounds[i]; the last counts all.
  std::array<std::int64_t, kBounds.size() + 1> cumulated() const;
  double sum_seconds() const;

 private:
  std::array<std::atomic<std::int64_t>, kBounds.size() + 1> counts_{};
  std::atomic<std::int64_t> sum_nanoseconds_ = 0;
};

using Labels = std::map<std::string, std::string>;

class Metrics {
 public:
  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name and labels give the same series again.
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& durations(const std::string& name, const std::string& help, const Labels& labels = {});

  std::string render() const;

 private:
  template <class Kind>
  struct Family {
    std::string help;
    std::map<Labels, Kind> series;  // nodes of a map stay where they are
  };
  template <class Kind>
  using Families = std::map<std::string, Family<Kind>>;

  Families<Counter> counters_;
  Families<Gauge> gauges_;
  Families<Histogram> histograms_;
};

}  // namespace clawdforge
