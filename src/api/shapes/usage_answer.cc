#include "api/shapes/usage_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "api/core/query.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kUsageSecondsMax = 253'402'300'799;  // the end of the year 9999
constexpr std::int64_t kUsageSpan = 30LL * 86'400;
constexpr std::int64_t kUsageHour = 3'600;
constexpr std::int64_t kUsageDay = 86'400;
constexpr std::array<std::int64_t, 4> kUsageSteps = {60, 300, kUsageHour, kUsageDay};
constexpr std::string_view kDimensions = "must be any of app, agent, model, kind, day, hour";

bool take_dimension(UsageAsked& asked, std::string_view name) {
  UsageDimensions& by = asked.query.by;
  if (name == "app") return by.app = true;
  if (name == "agent") return by.agent = true;
  if (name == "model") return by.model = true;
  if (name == "kind") return by.kind = true;
  if (asked.is_series) return false;
  if (name == "hour") asked.query.step = kUsageHour;
  if (name == "day" && asked.query.step == 0) asked.query.step = kUsageDay;
  return name == "hour" || name == "day";
}

void take_by(Query& query, UsageAsked& asked) {
  const std::string names = query.text("by").value_or("");
  for (std::size_t start = 0; start < names.size();) {
    const std::size_t end = std::min(names.find(',', start), names.size());
    std::string name = names.substr(start, end - start);
    start = end + 1;
    if (std::ranges::find(asked.by, name) != asked.by.end()) continue;
    if (!take_dimension(asked, name)) {
      return query.wrong("by", asked.is_series
                                   ? "must be any of app, agent, model, kind where there is a step"
                                   : std::string(kDimensions));
    }
    asked.by.push_back(std::move(name));
  }
}

void take_step(Query& query, UsageAsked& asked) {
  const auto step = query.integer("step", 1, kUsageDay);
  if (!step) return;
  asked.is_series = true;
  if (std::ranges::find(kUsageSteps, *step) == kUsageSteps.end()) {
    return query.wrong("step", "must be 60, 300, 3600 or 86400");
  }
  UsageQuery& wanted = asked.query;
  wanted.step = *step;
  wanted.from = wanted.from / *step * *step;
  wanted.to = (wanted.to + *step - 1) / *step * *step;
  if ((wanted.to - wanted.from) / *step > kUsageStepsMax) {
    query.wrong("step", fmt::format("has more than {} steps in this time; ask for a longer step or "
                                    "a shorter time",
                                    kUsageStepsMax));
  }
}

std::string date_of(std::int64_t at) {
  const TimePoint time{std::chrono::seconds(at)};
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string hour_of(std::int64_t at) {
  return fmt::format("{}T{:02}:00Z", date_of(at), at % kUsageDay / kUsageHour);
}

std::string value_of(const UsageRow& row, std::string_view name) {
  if (name == "app") return row.app.str();
  if (name == "agent") return row.agent;
  if (name == "model") return row.model;
  if (name == "kind") return row.kind;
  return name == "day" ? date_of(row.at) : hour_of(row.at);
}

void append_names(std::string& out, const UsageAsked& asked, const UsageRow& row) {
  for (const std::string& name : asked.by) {
    const std::string value = value_of(row, name);
    append_member(out, name, unless_empty(value));  // of a model only: the agent's default
  }
}

void append_sums(std::string& out, const UsageSums& sums) {
  append_member(out, "asks", sums.asks);
  append_member(out, "failed", sums.failed);
  append_member(out, "input_tokens", sums.tokens.input_tokens);
  append_member(out, "output_tokens", sums.tokens.output_tokens);
  append_member(out, "cache_read_tokens", sums.tokens.cache_read_tokens);
  append_member(out, "cache_write_tokens", sums.tokens.cache_write_tokens);
  append_member(out, "cost_usd", usd_of(sums.nano_usd));
  append_member(out, "agent_ms", sums.agent_ms);
}

void append_head(std::string& out, const UsageAsked& asked) {
  append_member(out, "from", asked.query.from);
  append_member(out, "to", asked.query.to);
  append_name(out, "by");
  out += '[';
  for (const std::string& name : asked.by) {
    if (out.back() != '[') out += ',';
    append_json_string(out, name);
  }
  out += ']';
}

// A cell with anything in it that a program for tables could take for more than text is quoted.
void append_cell(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

// One line of columns: a value for each step.
struct Series {
  std::string key;  // JSON
  std::int64_t asks = 0;
  std::vector<UsageSums> steps;
};

template <class Show>
void append_column(std::string& out, std::string_view name, const Series& series, Show show) {
  append_name(out, name);
  out += '[';
  for (const UsageSums& sums : series.steps) {
    if (out.back() != '[') out += ',';
    show(out, sums);
  }
  out += ']';
}

void append_whole(std::string& out, std::string_view name, const Series& series,
                  std::int64_t (*value)(const UsageSums&)) {
  append_column(out, name, series, [value](std::string& to, const UsageSums& sums) {
    to += std::to_string(value(sums));
  });
}

void append_part(std::string& out, std::string_view name, const Series& series, double part) {
  append_column(out, name, series, [part](std::string& to, const UsageSums& sums) {
    const auto time = answer_ms_at(sums.answers, part);
    to += time ? std::to_string(*time) : "null";
  });
}

void append_series(std::string& out, const Series& series) {
  out += R"({"key":)" + series.key;
  append_whole(out, "asks", series, [](const UsageSums& sums) { return sums.asks; });
  append_whole(out, "failed", series, [](const UsageSums& sums) { return sums.failed; });
  append_whole(out, "input_tokens", series,
               [](const UsageSums& sums) { return sums.tokens.input_tokens; });
  append_whole(out, "output_tokens", series,
               [](const UsageSums& sums) { return sums.tokens.output_tokens; });
  append_whole(out, "cache_read_tokens", series,
               [](const UsageSums& sums) { return sums.tokens.cache_read_tokens; });
  append_whole(out, "cache_write_tokens", series,
               [](const UsageSums& sums) { return sums.tokens.cache_write_tokens; });
  append_column(out, "cost_usd", series, [](std::string& to, const UsageSums& sums) {
    to += fmt::format("{}", usd_of(sums.nano_usd));
  });
  append_whole(out, "agent_ms", series, [](const UsageSums& sums) { return sums.agent_ms; });
  append_part(out, "p50_ms", series, 0.5);
  append_part(out, "p90_ms", series, 0.9);
  append_part(out, "p99_ms", series, 0.99);
  out += '}';
}

// All keys, those with the most asks first; what is over the limit is summed up in the last one.
std::vector<Series> series_of(const UsageAsked& asked, const std::vector<UsageRow>& rows) {
  const UsageQuery& query = asked.query;
  const auto steps = static_cast<std::size_t>((query.to - query.from) / query.step);
  std::map<std::string, Series> found;
  for (const UsageRow& row : rows) {
    std::string key = "{";
    append_names(key, asked, row);
    key += '}';
    found[key].asks += row.sums.asks;
  }
  std::vector<Series> all;
  for (auto& [key, series] : found) all.push_back({.key = key, .asks = series.asks, .steps = {}});
  std::ranges::sort(all, [](const Series& a, const Series& b) {
    return a.asks != b.asks ? a.asks > b.asks : a.key < b.key;
  });
  const bool has_rest = all.size() > kUsageSeriesMax;
  if (has_rest) {
    all.resize(kUsageSeriesMax);
    all.push_back({.key = R"("other")", .asks = 0, .steps = {}});
  }
  std::map<std::string, Series*> places;
  for (Series& series : all) {
    series.steps.resize(steps);
    places[series.key] = &series;
  }
  for (const UsageRow& row : rows) {
    std::string key = "{";
    append_names(key, asked, row);
    key += '}';
    const auto place = places.find(key);
    Series& series = place == places.end() ? all.back() : *place->second;
    const auto step = static_cast<std::size_t>((row.at - query.from) / query.step);
    if (row.at >= query.from && step < steps) series.steps[step].add(row.sums);
  }
  return all;
}

}  // namespace

Result<UsageAsked> parse_usage(std::string_view text, TimePoint now) {
  Query query(text);
  UsageAsked asked;
  UsageQuery& wanted = asked.query;
  wanted.to = query.integer("to", 0, kUsageSecondsMax).value_or(unix_seconds(now) + 1);
  wanted.from = query.integer("from", 0, kUsageSecondsMax)
                    .value_or(std::max<std::int64_t>(wanted.to - kUsageSpan, 0));
  if (wanted.from > wanted.to) query.wrong("from", "must not be after to");
  // Rows are counted by minute: the minute in which the span begins is in it.
  wanted.from = wanted.from / 60 * 60;
  take_step(query, asked);
  take_by(query, asked);
  if (auto app = query.text("app")) wanted.app = AppName(std::move(*app));
  wanted.rows_max = asked.is_series ? kUsagePointsMax : kUsageRowsMax;
  if (auto checked = query.check(); !checked) return std::unexpected(checked.error());
  return asked;
}

std::string usage_json(const UsageAsked& asked, const std::vector<UsageRow>& rows) {
  std::string out = "{";
  append_head(out, asked);
  append_name(out, "rows");
  out += '[';
  UsageSums totals;
  for (const UsageRow& row : rows) {
    out += out.back() == '[' ? "{" : ",{";
    append_names(out, asked, row);
    append_sums(out, row.sums);
    out += '}';
    totals.add(row.sums);
  }
  out += ']';
  append_name(out, "totals");
  out += '{';
  append_sums(out, totals);
  return out + "}}";
}

std::string usage_csv(const UsageAsked& asked, const std::vector<UsageRow>& rows) {
  std::string out;
  for (const std::string& name : asked.by) out.append(name).append(",");
  out +=
      "asks,failed,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cost_usd,"
      "agent_ms\r\n";
  for (const UsageRow& row : rows) {
    for (const std::string& name : asked.by) {
      append_cell(out, value_of(row, name));
      out += ',';
    }
    const UsageSums& sums = row.sums;
    out +=
        fmt::format("{},{},{},{},{},{},{},{}\r\n", sums.asks, sums.failed, sums.tokens.input_tokens,
                    sums.tokens.output_tokens, sums.tokens.cache_read_tokens,
                    sums.tokens.cache_write_tokens, usd_of(sums.nano_usd), sums.agent_ms);
  }
  return out;
}

std::string usage_series(const UsageAsked& asked, const std::vector<UsageRow>& rows) {
  std::string out = "{";
  append_head(out, asked);
  append_member(out, "step", asked.query.step);
  append_name(out, "times");
  out += '[';
  for (std::int64_t at = asked.query.from; at < asked.query.to; at += asked.query.step) {
    if (out.back() != '[') out += ',';
    out += std::to_string(at);
  }
  out += ']';
  append_name(out, "series");
  out += '[';
  for (const Series& series : series_of(asked, rows)) {
    if (out.back() != '[') out += ',';
    append_series(out, series);
  }
  return out + "]}";
}

}  // namespace clawdforge
