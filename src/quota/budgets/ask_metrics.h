// AskMetrics shows what asks used, and which were refused, by app, agent, kind of model and code.
// Names of apps and models are words of others, so their number is bounded: the first apps have
// series of their own, the rest are "other", and models are told apart by their family. Io thread
// only.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "base/telemetry/metrics.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {

inline constexpr std::size_t kAppLabelsMax = 50;
inline constexpr std::size_t kAgentLabelsMax = 20;

// opus, sonnet, haiku, gpt, gemini, or other.
std::string_view model_class(std::string_view model);

class AskMetrics {
 public:
  explicit AskMetrics(Metrics& metrics) : metrics_(metrics) {}

  void note_used(const AskUsage& ask);
  // The code is one of a fixed set.
  void note_refused(const std::string& app, std::string_view code);

 private:
  static std::string bounded(std::set<std::string>& known, const std::string& name,
                             std::size_t names_max);

  Metrics& metrics_;
  std::set<std::string> apps_;
  std::set<std::string> agents_;
};

}  // namespace clawdforge
