// AskMetrics shows what asks used, and which were refused, by app, agent, kind of model and code.
// Names of apps and models are words of others, so their number is bounded: the first apps have
// series of their own, the rest are "other", and models are told apart by their family. Io thread
// only.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

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
  void note_refused(const AppName& app, std::string_view agent, std::string_view model,
                    std::string_view code);

 private:
  using Names = std::set<std::string, std::less<>>;
  // The series of one app, agent and kind of model. They are kept, because looking each of them up
  // by its labels for every ask costs more than all the rest that an ask does with its ticket.
  struct Series {
    Counter& asks;
    Counter& cost;
    Counter& input;
    Counter& output;
    Counter& cache_read;
    Counter& cache_write;
  };
  // What `known` has of the name; "other" if it is full.
  static std::string_view bounded(Names& known, std::string_view name, std::size_t names_max);
  Series make_series(const Labels& labels);

  Metrics& metrics_;
  Names apps_;
  Names agents_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Series> series_;
};

}  // namespace clawdforge
