// What asks used, counted: tokens by kind, money, the agent's time, and how long answers took. An
// ask is one run or one turn. Plain records and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/run.h"

namespace clawdforge {

enum class AskKind { run, turn };
std::string_view name_of(AskKind kind);

// Money is counted in whole billionths of a dollar, so that sums are exact in every order.
inline constexpr std::int64_t kNanoUsdPerUsd = 1'000'000'000;
// Zero for what is not a sum of money: not finite, negative, or over a billion dollars.
std::int64_t nano_usd_of(std::optional<double> usd);
double usd_of(std::int64_t nano_usd);

// One ask that was asked of an agent and has ended, as far as its agent told what it used.
struct AskUsage {
  AppName app{};
  std::string agent{};
  std::string model{};  // empty: the agent's default
  AskKind kind = AskKind::run;
  bool has_failed = false;
  bool is_answered = false;  // it went well, so its time is that of an answer
  Usage tokens{};
  std::int64_t nano_usd = 0;
  std::int64_t agent_ms = 0;
  TimePoint ended_at{};
};

std::int64_t all_tokens(const Usage& usage);

// How long answers took: bucket i counts those of at most answer_ms_max(i), the last one all that
// took longer.
inline constexpr std::size_t kAnswerBuckets = 20;
using AnswerTimes = std::array<std::int64_t, kAnswerBuckets>;

std::size_t answer_bucket(std::int64_t milliseconds);
// Of every bucket but the last, which has no end.
std::int64_t answer_ms_max(std::size_t bucket);
// The time within which this part of the answers came, estimated within its bucket; none: there
// were no answers. Of the last bucket its beginning.
std::optional<std::int64_t> answer_ms_at(const AnswerTimes& times, double part);

// Sums over any number of asks.
struct UsageSums {
  std::int64_t asks = 0;
  std::int64_t failed = 0;
  Usage tokens{};
  std::int64_t nano_usd = 0;
  std::int64_t agent_ms = 0;
  AnswerTimes answers{};

  void add(const UsageSums& other);
  bool operator==(const UsageSums&) const = default;
};

UsageSums sums_of(const AskUsage& ask);

}  // namespace clawdforge
