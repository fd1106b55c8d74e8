// Reads the text form of a gateway's metrics. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

struct MetricSample {
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;
};

inline constexpr std::size_t kMetricSamplesMax = 20'000;

class MetricsText {
 public:
  // Lines that cannot be read are left out.
  explicit MetricsText(std::string_view text);

  // The sum of all samples of this name that have these labels.
  double sum(std::string_view name,
             const std::vector<std::pair<std::string_view, std::string_view>>& labels = {}) const;
  const std::vector<MetricSample>& samples(std::string_view name) const;

 private:
  std::map<std::string, std::vector<MetricSample>, std::less<>> families_;
};

}  // namespace clawdforge
