// What GET /usage asks for and is answered: rows, as JSON or CSV, or series for plots. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ledger/usage/usage_rows.h"

namespace clawdforge {

inline constexpr std::int64_t kUsageRowsMax = 10'000;     // of one answer
inline constexpr std::int64_t kUsageStepsMax = 1'500;     // of one series
inline constexpr std::size_t kUsageSeriesMax = 50;        // of one answer; the rest are one more
inline constexpr std::int64_t kUsagePointsMax = 100'000;  // that the ledger gives for series

struct UsageAsked {
  UsageQuery query;
  std::vector<std::string> by;  // as it was asked for
  bool is_series = false;
};

// The query of a request. Without a span it is the last 30 days. Errc::invalid with all that is
// wrong.
Result<UsageAsked> parse_usage(std::string_view query, TimePoint now);

std::string usage_json(const UsageAsked& asked, const std::vector<UsageRow>& rows);
std::string usage_csv(const UsageAsked& asked, const std::vector<UsageRow>& rows);
// Those with the most asks have a series each, the rest are "other".
std::string usage_series(const UsageAsked& asked, const std::vector<UsageRow>& rows);

}  // namespace clawdforge
