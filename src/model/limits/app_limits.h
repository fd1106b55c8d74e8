// What an app may use: how often it may ask, its budgets, its share among others, and until when
// its token works. The fields stand in one table, by which the API and the ledger go. Plain records
// and pure functions.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/limits/budget.h"

namespace clawdforge {

inline constexpr std::int64_t kWeightMax = 100;
inline constexpr std::int64_t kAsksPerMinuteMax = 1'000'000;

struct AppLimits {
  std::optional<std::int64_t> expires_at;  // unix seconds
  std::optional<std::int64_t> asks_per_minute;
  std::vector<Budget> budgets;
  std::optional<std::int64_t> upload_bytes_max;
  std::optional<std::int64_t> weight;

  bool operator==(const AppLimits&) const = default;
};

struct LimitField {
  std::string_view name;
  // Null takes it back. The end of a sentence that says what is wrong; empty: taken.
  std::string (*set)(AppLimits& limits, const boost::json::value& value);
  // Null where it is not set.
  boost::json::value (*show)(const AppLimits& limits);
};
std::span<const LimitField> limit_fields();

// The fields that are set, as a JSON object; and back. A field that is not known is an error: to
// leave it out would allow more than was meant.
std::string limits_text(const AppLimits& limits);
std::expected<AppLimits, std::string> limits_from(std::string_view text);

}  // namespace clawdforge
