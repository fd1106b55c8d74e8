#include "quota/budgets/ask_metrics.h"

#include <array>

namespace clawdforge {

std::string_view model_class(std::string_view model) {
  constexpr std::array<std::string_view, 5> kFamilies = {"opus", "sonnet", "haiku", "gpt",
                                                         "gemini"};
  for (const std::string_view family : kFamilies) {
    if (model.contains(family)) return family;
  }
  return model.empty() ? "default" : "other";
}

std::string_view AskMetrics::bounded(Names& known, std::string_view name, std::size_t names_max) {
  if (const auto found = known.find(name); found != known.end()) return *found;
  if (known.size() >= names_max) return "other";
  return *known.emplace(name).first;
}

AskMetrics::Series AskMetrics::make_series(const Labels& labels) {
  const auto tokens = [&](const char* kind) -> Counter& {
    Labels with_kind = labels;
    with_kind["kind"] = kind;
    return metrics_.counter("clawdforge_ask_tokens_total",
                            "Their tokens, by kind, as far as agents told them.", with_kind);
  };
  return {.asks = metrics_.counter("clawdforge_asks_total",
                                   "Runs and turns that were asked of an agent.", labels),
          .cost = metrics_.counter(
              "clawdforge_ask_cost_microusd_total",
              "What they cost, in millionths of a dollar, as far as agents told it.", labels),
          .input = tokens("input"),
          .output = tokens("output"),
          .cache_read = tokens("cache_read"),
          .cache_write = tokens("cache_write")};
}

void AskMetrics::note_used(const AskUsage& ask) {
  const std::string_view app = bounded(apps_, ask.app.str(), kAppLabelsMax);
  const std::string_view agent = bounded(agents_, ask.agent, kAgentLabelsMax);
  const std::string_view model = model_class(ask.model);
  auto found = series_.find({app, agent, model});
  if (found == series_.end()) {
    const Labels labels = {
        {"app", std::string(app)}, {"agent", std::string(agent)}, {"model", std::string(model)}};
    found = series_.emplace(std::tuple(app, agent, model), make_series(labels)).first;
  }
  const Series& series = found->second;
  series.asks.increment();
  series.cost.increment(ask.nano_usd / 1'000);
  series.input.increment(ask.tokens.input_tokens);
  series.output.increment(ask.tokens.output_tokens);
  series.cache_read.increment(ask.tokens.cache_read_tokens);
  series.cache_write.increment(ask.tokens.cache_write_tokens);
}

void AskMetrics::note_refused(const AppName& app, std::string_view agent, std::string_view model,
                              std::string_view code) {
  const Labels labels = {{"app", std::string(bounded(apps_, app.str(), kAppLabelsMax))},
                         {"agent", std::string(bounded(agents_, agent, kAgentLabelsMax))},
                         {"model", std::string(model_class(model))},
                         {"code", std::string(code)}};
  metrics_
      .counter("clawdforge_asks_refused_total",
               "Runs and turns that were refused at admission, by code.", labels)
      .increment();
}

}  // namespace clawdforge
