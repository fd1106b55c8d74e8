#include "ledger/rows/app_row.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <limits>

#include "base/json_text.h"
#include "ledger/core/row_values.h"
#include "model/limits/app_limits.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

template <class T>
using Read = std::expected<T, std::string>;

std::string text_of(const std::vector<Cidr>& cidrs) {
  std::string text = "[";
  for (const Cidr& cidr : cidrs) {
    if (text.size() > 1) text += ',';
    append_json_string(text, cidr.text());
  }
  text += ']';
  return text;
}

Read<Digest> digest_from(const SqlValue& value) {
  const auto digest = digest_in(value);
  if (!digest) return std::unexpected("token_sha256 is not a SHA-256 in lower-case hexadecimal");
  return *digest;
}

Read<std::vector<Cidr>> cidrs_from(const SqlValue& value) {
  std::vector<Cidr> cidrs;
  if (std::holds_alternative<std::monostate>(value)) return cidrs;
  const auto malformed = std::unexpected("ip_cidrs is not a JSON array of strings");
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return malformed;
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(*text, error);
  if (error) return malformed;
  if (parsed.is_null()) return cidrs;
  if (!parsed.is_array()) return malformed;
  for (const boost::json::value& item : parsed.get_array()) {
    if (!item.is_string()) return malformed;
    const boost::json::string& range = item.get_string();
    auto cidr = Cidr::parse(std::string_view(range.data(), range.size()));
    if (!cidr) return std::unexpected(fmt::format("ip_cidrs: {}", cidr.error().message));
    cidrs.push_back(std::move(*cidr));
  }
  return cidrs;
}

Read<std::optional<EventFormat>> format_from(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  const auto* text = std::get_if<std::string>(&value);
  const auto format = text == nullptr ? std::nullopt : event_format_from(std::string_view(*text));
  if (!format) return std::unexpected("event_format is neither acp nor simple");
  return format;
}

Read<std::optional<std::int64_t>> number_from(const SqlValue& value, std::string_view column,
                                              std::int64_t max) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 0 || *number > max) {
    return std::unexpected(fmt::format("{} is not a whole number from 0 to {}", column, max));
  }
  return *number;
}

Read<std::optional<TimePoint>> time_from(const SqlValue& value, std::string_view column) {
  auto seconds = number_from(value, column, kUnixSecondsMax);
  if (!seconds) return std::unexpected(std::move(seconds.error()));
  return seconds->transform(
      [](std::int64_t second) { return TimePoint(std::chrono::seconds(second)); });
}

// What cannot be understood must not allow more than was meant, so there is no default for it.
Read<Policy> policy_of_row(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return Policy{};
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return std::unexpected("policy is not a JSON object");
  return policy_from(*text);
}

Read<std::shared_ptr<const AppLimits>> limits_of_row(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return nullptr;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return std::unexpected("limits is not a JSON object");
  auto limits = limits_from(*text);
  if (!limits) return std::unexpected(std::move(limits.error()));
  return std::make_shared<const AppLimits>(std::move(*limits));
}

}  // namespace

SqlRow row_of(const App& app) {
  SqlRow row(kAppAtColumnCount);
  row[kAppAtName] = app.name.str();
  row[kAppAtDigest] = to_hex(app.token_digest);
  row[kAppAtCidrs] = text_of(app.ip_cidrs);
  if (app.event_format) row[kAppAtEventFormat] = std::string(name_of(*app.event_format));
  row[kAppAtSessionsMax] = sql_value(app.sessions_max);
  row[kAppAtRunsMax] = sql_value(app.runs_max);
  row[kAppAtCreatedAt] = unix_seconds(app.created_at);
  if (app.last_used_at) row[kAppAtLastUsedAt] = unix_seconds(*app.last_used_at);
  if (app.policy != Policy{}) row[kAppAtPolicy] = policy_text(app.policy);
  if (app.limits) row[kAppAtLimits] = limits_text(*app.limits);
  return row;
}

std::expected<App, std::string> app_from(const SqlRow& row) {
  App app;
  const auto* name = std::get_if<std::string>(&row.at(kAppAtName));
  if (name == nullptr || !is_app_name(*name)) return std::unexpected("the name is not allowed");
  app.name = AppName(*name);

  auto digest = digest_from(row.at(kAppAtDigest));
  if (!digest) return std::unexpected(std::move(digest.error()));
  auto cidrs = cidrs_from(row.at(kAppAtCidrs));
  if (!cidrs) return std::unexpected(std::move(cidrs.error()));
  auto format = format_from(row.at(kAppAtEventFormat));
  if (!format) return std::unexpected(std::move(format.error()));
  constexpr auto kAny = std::numeric_limits<std::int64_t>::max();
  auto sessions_max = number_from(row.at(kAppAtSessionsMax), "max_sessions", kAny);
  if (!sessions_max) return std::unexpected(std::move(sessions_max.error()));
  auto runs_max = number_from(row.at(kAppAtRunsMax), "max_runs", kAny);
  if (!runs_max) return std::unexpected(std::move(runs_max.error()));
  auto created_at = time_from(row.at(kAppAtCreatedAt), "created_at");
  if (!created_at) return std::unexpected(std::move(created_at.error()));
  auto last_used_at = time_from(row.at(kAppAtLastUsedAt), "last_used_at");
  if (!last_used_at) return std::unexpected(std::move(last_used_at.error()));
  auto policy = policy_of_row(row.at(kAppAtPolicy));
  if (!policy) return std::unexpected(std::move(policy.error()));

  auto limits = limits_of_row(row.at(kAppAtLimits));
  if (!limits) return std::unexpected(std::move(limits.error()));

  app.token_digest = *digest;
  app.ip_cidrs = std::move(*cidrs);
  app.event_format = *format;
  app.sessions_max = *sessions_max;
  app.runs_max = *runs_max;
  app.created_at = created_at->value_or(TimePoint());
  app.last_used_at = *last_used_at;
  app.policy = std::move(*policy);
  app.limits = std::move(*limits);
  return app;
}

std::string name_in(const SqlRow& row) {
  constexpr std::size_t kShownMax = 64;
  const auto* name = std::get_if<std::string>(&row.at(kAppAtName));
  return name == nullptr ? std::string() : name->substr(0, kShownMax);
}

}  // namespace clawdforge
