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

std::string AskMetrics::bounded(std::set<std::string>& known, const std::string& name,
                                std::size_t names_max) {
  if (known.contains(name)) return name;
  if (known.size() >= names_max) return "other";
  known.insert(name);
  return name;
}

void AskMetrics::note_used(const AskUsage& ask) {
  const Labels labels = {{"app", bounded(apps_, ask.app.str(), kAppLabelsMax)},
                         {"agent", bounded(agents_, ask.agent, kAgentLabelsMax)},
                         {"model", std::string(model_class(ask.model))}};
  metrics_.counter("clawdforge_asks_total", "Runs and turns that were asked of an agent.", labels)
      .increment();
  metrics_
      .counter("clawdforge_ask_cost_microusd_total",
               "What they cost, in millionths of a dollar, as far as agents told it.", labels)
      .increment(ask.nano_usd / 1'000);
  const auto count = [&](const char* kind, std::int64_t tokens) {
    Labels with_kind = labels;
    with_kind["kind"] = kind;
    metrics_
        .counter("clawdforge_ask_tokens_total",
                 "Their tokens, by kind, as far as agents told them.", with_kind)
        .increment(tokens);
  };
  count("input", ask.tokens.input_tokens);
  count("output", ask.tokens.output_tokens);
  count("cache_read", ask.tokens.cache_read_tokens);
  count("cache_write", ask.tokens.cache_write_tokens);
}

void AskMetrics::note_refused(const std::string& app, std::string_view code) {
  metrics_
      .counter("clawdforge_asks_refused_total", "Runs and turns that a limit refused, by its code.",
               {{"app", bounded(apps_, app, kAppLabelsMax)}, {"code", std::string(code)}})
      .increment();
}

}  // namespace clawdforge
