#include "model/limits/ask_usage.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace clawdforge {
namespace {

constexpr std::int64_t kFirstBucketMs = 10;
constexpr double kUsdMax = 1e9;

}  // namespace

std::string_view name_of(AskKind kind) { return kind == AskKind::run ? "run" : "turn"; }

std::int64_t nano_usd_of(std::optional<double> usd) {
  if (!usd || !std::isfinite(*usd) || *usd <= 0 || *usd > kUsdMax) return 0;
  return std::llround(*usd * static_cast<double>(kNanoUsdPerUsd));
}

double usd_of(std::int64_t nano_usd) {
  return static_cast<double>(nano_usd) / static_cast<double>(kNanoUsdPerUsd);
}

std::int64_t all_tokens(const Usage& usage) {
  return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens +
         usage.cache_write_tokens;
}

std::int64_t answer_ms_max(std::size_t bucket) { return kFirstBucketMs << bucket; }

std::size_t answer_bucket(std::int64_t milliseconds) {
  std::size_t bucket = 0;
  while (bucket + 1 < kAnswerBuckets && milliseconds > answer_ms_max(bucket)) ++bucket;
  return bucket;
}

std::optional<std::int64_t> answer_ms_at(const AnswerTimes& times, double part) {
  const std::int64_t all = std::accumulate(times.begin(), times.end(), std::int64_t{0});
  if (all <= 0) return std::nullopt;
  const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(all);
  double before = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kAnswerBuckets; ++bucket) {
    const auto here = static_cast<double>(times[bucket]);
    if (here > 0 && before + here >= wanted) {
      const double from = bucket == 0 ? 0 : static_cast<double>(answer_ms_max(bucket - 1));
      const double to = static_cast<double>(answer_ms_max(bucket));
      return std::llround(from + (to - from) * (wanted - before) / here);
    }
    before += here;
  }
  return answer_ms_max(bucket - 1);
}

void UsageSums::add(const UsageSums& other) {
  asks += other.asks;
  failed += other.failed;
  tokens.input_tokens += other.tokens.input_tokens;
  tokens.output_tokens += other.tokens.output_tokens;
  tokens.cache_read_tokens += other.tokens.cache_read_tokens;
  tokens.cache_write_tokens += other.tokens.cache_write_tokens;
  nano_usd += other.nano_usd;
  agent_ms += other.agent_ms;
  for (std::size_t bucket = 0; bucket < kAnswerBuckets; ++bucket) {
    answers[bucket] += other.answers[bucket];
  }
}

UsageSums sums_of(const AskUsage& ask) {
  UsageSums sums{.asks = 1,
                 .failed = ask.has_failed ? 1 : 0,
                 .tokens = ask.tokens,
                 .nano_usd = ask.nano_usd,
                 .agent_ms = ask.agent_ms};
  if (ask.is_answered) sums.answers[answer_bucket(ask.agent_ms)] = 1;
  return sums;
}

}  // namespace clawdforge
