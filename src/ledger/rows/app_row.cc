#include "ledger/rows/app_row.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <limits>

#include "base/json_text.h"
#include "ledger/core/columns.h"
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

// Takes what was read, or passes on why it cannot be.
template <class Member, class T>
Read<void> put(Member& member, Read<T> read) {
  if (!read) return std::unexpected(std::move(read.error()));
  member = std::move(*read);
  return {};
}

Read<void> name_from(App& app, const SqlValue& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (name == nullptr || !is_app_name(*name)) return std::unexpected("the name is not allowed");
  app.name = AppName(*name);
  return {};
}

Read<TimePoint> created_from(const SqlValue& value) {
  auto at = time_from(value, "created_at");
  if (!at) return std::unexpected(std::move(at.error()));
  return at->value_or(TimePoint());
}

constexpr auto kAnyNumber = std::numeric_limits<std::int64_t>::max();

struct AppColumn {
  std::string_view name;
  Read<void> (*read)(App&, const SqlValue&) = nullptr;
  SqlValue (*added)(const App&) = nullptr;    // written when it is made
  SqlValue (*changed)(const App&) = nullptr;  // written when an admin changes it
};

// Of what an admin can change.
constexpr AppColumn changeable(std::string_view name, Read<void> (*read)(App&, const SqlValue&),
                               SqlValue (*value)(const App&)) {
  return {.name = name, .read = read, .added = value, .changed = value};
}

constexpr AppColumn kAppColumns[] = {
    {.name = "name",
     .read = name_from,
     .added = [](const App& app) -> SqlValue { return app.name.str(); }},
    {.name = "token_sha256",
     .read = [](App& app,
                const SqlValue& value) { return put(app.token_digest, digest_from(value)); },
     .added = [](const App& app) -> SqlValue { return to_hex(app.token_digest); }},
    changeable(
        "ip_cidrs",
        [](App& app, const SqlValue& value) { return put(app.ip_cidrs, cidrs_from(value)); },
        [](const App& app) -> SqlValue { return text_of(app.ip_cidrs); }),
    changeable(
        "event_format",
        [](App& app, const SqlValue& value) { return put(app.event_format, format_from(value)); },
        [](const App& app) {
          return sql_value(app.event_format.transform(
              [](EventFormat format) { return std::string(name_of(format)); }));
        }),
    changeable(
        "max_sessions",
        [](App& app, const SqlValue& value) {
          return put(app.sessions_max, number_from(value, "max_sessions", kAnyNumber));
        },
        [](const App& app) { return sql_value(app.sessions_max); }),
    changeable(
        "max_runs",
        [](App& app, const SqlValue& value) {
          return put(app.runs_max, number_from(value, "max_runs", kAnyNumber));
        },
        [](const App& app) { return sql_value(app.runs_max); }),
    {.name = "created_at",
     .read = [](App& app,
                const SqlValue& value) { return put(app.created_at, created_from(value)); },
     .added = [](const App& app) -> SqlValue { return unix_seconds(app.created_at); }},
    {.name = "last_used_at",
     .read =
         [](App& app, const SqlValue& value) {
           return put(app.last_used_at, time_from(value, "last_used_at"));
         },
     .added = [](const App& app) { return sql_value(app.last_used_at.transform(unix_seconds)); }},
    changeable(
        "policy",
        [](App& app, const SqlValue& value) { return put(app.policy, policy_of_row(value)); },
        [](const App& app) {
          return app.policy == Policy{} ? SqlValue() : SqlValue(policy_text(app.policy));
        }),
    changeable(
        "limits",
        [](App& app, const SqlValue& value) { return put(app.limits, limits_of_row(value)); },
        [](const App& app) {
          return app.limits ? SqlValue(limits_text(*app.limits)) : SqlValue();
        }),
};
constexpr std::size_t kAppColumnName = 0;
static_assert(column_at(kAppColumns, &AppColumn::read, "name") == kAppColumnName);

}  // namespace

std::string app_columns() { return column_names(kAppColumns, &AppColumn::read); }

std::string app_insert() {
  return insert_into("tokens", kAppColumns, &AppColumn::added) + " ON CONFLICT (name) DO NOTHING";
}

SqlRow row_of(const App& app) { return with_values({}, kAppColumns, &AppColumn::added, app); }

std::string app_update() {
  return update_of("tokens", kAppColumns, &AppColumn::changed, 2) + " WHERE name = $1";
}

SqlRow changes_of(const App& app) {
  return with_values({app.name.str()}, kAppColumns, &AppColumn::changed, app);
}

std::expected<App, std::string> app_from(const SqlRow& row) {
  App app;
  std::size_t at = 0;
  for (const AppColumn& column : kAppColumns) {
    if (auto read = column.read(app, row.at(at++)); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
  return app;
}

std::string name_in(const SqlRow& row) {
  constexpr std::size_t kShownMax = 64;
  const auto* name = std::get_if<std::string>(&row.at(kAppColumnName));
  return name == nullptr ? std::string() : name->substr(0, kShownMax);
}

}  // namespace clawdforge
