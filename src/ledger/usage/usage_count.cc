#include "ledger/usage/usage_count.h"

#include <fmt/format.h>

#include <array>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::size_t kKeyColumns = 5;
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

// The windows of budgets that are open now, of one app or of all apps together. Not of both in one
// statement: for a list of scopes SQLite makes a table each time, which costs ten times as much.
constexpr std::string_view kCountWindows =
    "UPDATE budget_windows SET nano_usd = nano_usd + $3, tokens = tokens + $4, asks = asks + 1, "
    "agent_ms = agent_ms + $5 WHERE scope = $1 AND begins_at <= $2 AND ends_at > $2";

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

std::string places(std::size_t count) {
  std::string text;
  for (std::size_t place = 1; place <= count; ++place) {
    text += fmt::format("{}${}", place == 1 ? "" : ", ", place);
  }
  return text;
}

std::string bucket_column(std::size_t bucket) { return fmt::format("t{:02}", bucket); }

// In the row that is there: only the columns that change. One text for each bucket of answers, and
// the last one for an ask without an answer.
std::array<std::string, kAnswerBuckets + 1> add_statements() {
  std::array<std::string, kAnswerBuckets + 1> all;
  for (std::size_t bucket = 0; bucket < all.size(); ++bucket) {
    std::string sums;
    for (std::size_t i = 0; i < std::size(kPlainColumns); ++i) {
      append_each(sums, fmt::format("@ = @ + ${}", kKeyColumns + 1 + i), kPlainColumns[i]);
    }
    if (bucket < kAnswerBuckets) append_each(sums, "@ = @ + 1", bucket_column(bucket));
    all[bucket] = fmt::format(
        "UPDATE usage_minutes SET {} WHERE at = $1 AND app_name = $2 AND agent = $3 AND "
        "model = $4 AND kind = $5",
        sums);
  }
  return all;
}

Result<void> count_minute(SqlDriver& driver, const AskUsage& ask) {
  static const std::array<std::string, kAnswerBuckets + 1> kAdd = add_statements();
  static const std::string kInsert = fmt::format(
      "INSERT INTO usage_minutes (at, app_name, agent, model, kind, {}) VALUES ({}) "
      "ON CONFLICT (at, app_name, agent, model, kind) DO UPDATE SET {}",
      usage_columns("@"), places(kKeyColumns + std::size(kPlainColumns) + kAnswerBuckets),
      usage_columns("@ = usage_minutes.@ + excluded.@"));
  const std::int64_t minute = unix_seconds(ask.ended_at) / 60 * 60;
  const UsageSums sums = sums_of(ask);
  SqlRow row;
  row.reserve(kKeyColumns + std::size(kPlainColumns) + kAnswerBuckets);
  row = {minute, ask.app.str(), ask.agent, ask.model, std::string(name_of(ask.kind))};
  row.insert(row.end(), {sums.asks, sums.failed, sums.tokens.input_tokens,
                         sums.tokens.output_tokens, sums.tokens.cache_read_tokens,
                         sums.tokens.cache_write_tokens, sums.nano_usd, sums.agent_ms});
  const std::size_t bucket = ask.is_answered ? answer_bucket(ask.agent_ms) : kAnswerBuckets;
  const auto added = changed_by(driver.execute(kAdd[bucket], row));
  if (!added) return std::unexpected(added.error());
  if (*added > 0) return {};
  row.insert(row.end(), sums.answers.begin(), sums.answers.end());
  return without_rows(driver.execute(kInsert, row));
}

}  // namespace

std::string usage_columns(std::string_view each) {
  std::string text;
  for (const std::string_view column : kPlainColumns) append_each(text, each, column);
  for (std::size_t bucket = 0; bucket < kAnswerBuckets; ++bucket) {
    append_each(text, each, bucket_column(bucket));
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

Result<void> count_ask(SqlDriver& driver, const AskUsage& ask) {
  if (auto counted = count_minute(driver, ask); !counted) return counted;
  for (const std::string& scope : {ask.app.str(), std::string()}) {
    auto counted =
        without_rows(driver.execute(kCountWindows, {scope, unix_seconds(ask.ended_at), ask.nano_usd,
                                                    all_tokens(ask.tokens), ask.agent_ms}));
    if (!counted) return counted;
  }
  return {};
}

}  // namespace clawdforge
