#include "cli/top/metrics_text.h"

#include <algorithm>
#include <cstdlib>

namespace clawdforge {
namespace {

// `name="value",…}`: takes the labels off `rest`. False: it is not well formed.
bool take_labels(std::string_view& rest, MetricSample& sample) {
  while (!rest.starts_with('}')) {
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) return false;
    const std::string name(rest.substr(0, equals));
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() > 1) rest.remove_prefix(1);
      value += rest.front();
      rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    if (rest.starts_with(',')) rest.remove_prefix(1);
    sample.labels[name] = std::move(value);
  }
  rest.remove_prefix(1);
  return true;
}

}  // namespace

MetricsText::MetricsText(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty() && count < kMetricSamplesMax) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t name_end = line.find_first_of("{ ");
    if (name_end == std::string_view::npos) continue;
    const std::string name(line.substr(0, name_end));
    MetricSample sample;
    const bool has_labels = line[name_end] == '{';
    line.remove_prefix(name_end + 1);
    if (has_labels && !take_labels(line, sample)) continue;
    sample.value = std::strtod(std::string(line).c_str(), nullptr);
    families_[name].push_back(std::move(sample));
    ++count;
  }
}

const std::vector<MetricSample>& MetricsText::samples(std::string_view name) const {
  static const std::vector<MetricSample> kNone;
  const auto found = families_.find(name);
  return found == families_.end() ? kNone : found->second;
}

double MetricsText::sum(
    std::string_view name,
    const std::vector<std::pair<std::string_view, std::string_view>>& labels) const {
  double sum = 0;
  for (const MetricSample& sample : samples(name)) {
    const bool fits = std::ranges::all_of(labels, [&](const auto& wanted) {
      const auto label = sample.labels.find(wanted.first);
      return label != sample.labels.end() && label->second == wanted.second;
    });
    if (fits) sum += sample.value;
  }
  return sum;
}

}  // namespace clawdforge
