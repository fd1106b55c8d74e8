#include "ledger/usage/usage_count.h"

#include <fmt/format.h>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPlainColumns[] = {
    "asks",
    "failed",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "nano_usd",
    "agent_ms",
};

// The windows of budgets that are open now, of the app and of all apps.
constexpr std::string_view kCountWindows =
    "UPDATE budget_windows SET nano_usd = nano_usd + $3, tokens = tokens + $4, asks = asks + 1, "
    "agent_ms = agent_ms + $5 WHERE scope IN ($1, '') AND begins_at <= $2 AND ends_at > $2";

void append_each(std::string& text, std::string_view each, std::string_view column) {
  if (!text.empty()) text += ", ";
  for (const char c : each) {
    if (c == '@') {
      text += column;
    } else {
      text += c;
    }
  }
}

// 5 of the key, and the sums.
std::string places(std::size_t count) {
  std::string text;
  for (std::size_t place = 1; place <= count; ++place) {
    text += fmt::format("{}${}", place == 1 ? "" : ", ", place);
  }
  return text;
}

}  // namespace

std::string usage_columns(std::string_view each) {
  std::string text;
  for (const std::string_view column : kPlainColumns) append_each(text, each, column);
  for (std::size_t bucket = 0; bucket < kAnswerBuckets; ++bucket) {
    append_each(text, each, fmt::format("t{:02}", bucket));
  }
  return text;
}

UsageSums sums_in(const SqlRow& row, std::size_t first_column) {
  std::size_t column = first_column;
  const auto next = [&] { return whole_in(row.at(column++)).value_or(0); };
  UsageSums sums;
  sums.asks = next();
  sums.failed = next();
  sums.tokens.input_tokens = next();
  sums.tokens.output_tokens = next();
  sums.tokens.cache_read_tokens = next();
  sums.tokens.cache_write_tokens = next();
  sums.nano_usd = next();
  sums.agent_ms = next();
  for (std::int64_t& count : sums.answers) count = next();
  return sums;
}

void append_sums(SqlRow& row, const UsageSums& sums) {
  row.insert(row.end(), {sums.asks, sums.failed, sums.tokens.input_tokens,
                         sums.tokens.output_tokens, sums.tokens.cache_read_tokens,
                         sums.tokens.cache_write_tokens, sums.nano_usd, sums.agent_ms});
  for (const std::int64_t count : sums.answers) row.emplace_back(count);
}

Result<void> count_ask(SqlDriver& driver, const AskUsage& ask) {
  static const std::string kCount = fmt::format(
      "INSERT INTO usage_minutes (at, app_name, agent, model, kind, {}) VALUES ({}) "
      "ON CONFLICT (at, app_name, agent, model, kind) DO UPDATE SET {}",
      usage_columns("@"), places(5 + std::size(kPlainColumns) + kAnswerBuckets),
      usage_columns("@ = usage_minutes.@ + excluded.@"));
  const std::int64_t minute = unix_seconds(ask.ended_at) / 60 * 60;
  SqlRow row = {minute, ask.app.str(), ask.agent, ask.model, std::string(name_of(ask.kind))};
  append_sums(row, sums_of(ask));
  if (auto counted = without_rows(driver.execute(kCount, row)); !counted) return counted;
  return without_rows(
      driver.execute(kCountWindows, {ask.app.str(), unix_seconds(ask.ended_at), ask.nano_usd,
                                     all_tokens(ask.tokens), ask.agent_ms}));
}

}  // namespace clawdforge
