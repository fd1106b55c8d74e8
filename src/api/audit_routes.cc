#include "api/audit_routes.h"

#include <fmt/format.h>

#include <type_traits>

#include "api/problem.h"
#include "api/query.h"
#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kAuditPageDefault = 100;
constexpr std::int64_t kAuditPageMax = 1'000;
constexpr std::int64_t kQuerySecondsMax = 253'402'300'799;  // the end of the year 9999

std::optional<TimePoint> time_of(Query& query, std::string_view name) {
  return query.integer(name, 0, kQuerySecondsMax).transform([](std::int64_t second) {
    return TimePoint(std::chrono::seconds(second));
  });
}

Result<AuditFilter> parse_filter(const Request& request) {
  Query query(request.query);
  AuditFilter filter;
  filter.app = query.text("app");
  filter.since = time_of(query, "since");
  filter.until = time_of(query, "until");
  filter.limit = query.integer("limit", 1, kAuditPageMax).value_or(kAuditPageDefault);
  filter.cursor = query.text("cursor");
  if (auto checked = query.check(); !checked) return std::unexpected(std::move(checked.error()));
  return filter;
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  out.append(",\"").append(name).append("\":");
  append_json_string(out, text);
}

// Null where there is none.
template <class T>
void append_optional(std::string& out, std::string_view name, const std::optional<T>& value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    if (value) return append_text(out, name, *value);
  }
  out.append(",\"").append(name).append("\":");
  if (!value) {
    out += "null";
  } else if constexpr (std::is_arithmetic_v<T>) {
    fmt::format_to(std::back_inserter(out), "{}", *value);
  }
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void append_usage(std::string& out, const std::optional<Usage>& usage) {
  if (!usage) {
    out += R"(,"usage":null)";
    return;
  }
  fmt::format_to(std::back_inserter(out),
                 R"(,"usage":{{"input_tokens":{},"output_tokens":{},"cache_read_tokens":{},)"
                 R"("cache_write_tokens":{}}})",
                 usage->input_tokens, usage->output_tokens, usage->cache_read_tokens,
                 usage->cache_write_tokens);
}

// A run whose end nobody has seen has no duration: an earlier life of the gateway was
// cut off with it.
std::optional<std::int64_t> duration_of(const RunEnd& end) {
  if (end.state == "interrupted" && end.duration_ms == 0) return std::nullopt;
  return end.duration_ms;
}

void append_run(std::string& out, const RunRecord& record) {
  const Run& run = record.run;
  const std::optional<RunEnd>& end = record.end;
  const RunEnd none;
  const RunEnd& ended = end ? *end : none;
  out += R"({"run_id":)";
  append_json_string(out, run.id);
  append_text(out, "app_name", run.app);
  append_text(out, "agent", run.agent);
  append_optional(out, "model", unless_empty(run.model));
  append_text(out, "state", end ? std::string_view(end->state) : "running");
  append_optional(out, "started_at", std::optional(unix_seconds(run.started_at)));
  append_optional(out, "ended_at", end ? std::optional(unix_seconds(end->ended_at)) : std::nullopt);
  append_optional(out, "prompt_bytes", std::optional(run.prompt_bytes));
  append_optional(out, "result_bytes", ended.result_bytes);
  append_optional(out, "duration_ms", end ? duration_of(*end) : std::nullopt);
  append_optional(out, "outcome", unless_empty(ended.outcome));
  append_optional(out, "stop_reason", ended.stop_reason);
  append_optional(out, "exit_code", ended.exit_code);
  append_optional(out, "exit_signal", ended.exit_signal);
  append_optional(out, "cost_usd", ended.cost_usd);
  append_usage(out, ended.usage);
  append_optional(out, "instance_id", unless_empty(run.instance_id));
  out += '}';
}

Task<Response> list_runs(LedgerReader* ledger, Request* request) {
  auto filter = parse_filter(*request);
  if (!filter) co_return problem(filter.error(), request->id);
  auto page = co_await ledger->runs(std::move(*filter));
  if (!page) co_return problem(page.error(), request->id);
  std::string body = R"({"runs":[)";
  for (const RunRecord& record : page->runs) {
    if (body.back() != '[') body += ',';
    append_run(body, record);
  }
  fmt::format_to(std::back_inserter(body), R"(],"count":{})", page->runs.size());
  append_optional(body, "next_cursor", page->next_cursor);
  body += '}';
  co_return json_response(std::move(body));
}

}  // namespace

void add_audit_routes(Endpoints& endpoints, LedgerReader& ledger) {
  LedgerReader* const from = &ledger;
  endpoints.push_back({"GET", "/admin/runs", Permit::admin, Body::none,
                       [from](Caller, Request* request) { return list_runs(from, request); }});
}

}  // namespace clawdforge
