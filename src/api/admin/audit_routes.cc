#include "api/admin/audit_routes.h"

#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/shapes/session_state.h"
#include "json/json_members.h"

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

AuditFilter filter_of(Query& query) {
  AuditFilter filter;
  filter.app = query.text("app");
  filter.since = time_of(query, "since");
  filter.until = time_of(query, "until");
  filter.limit = query.integer("limit", 1, kAuditPageMax).value_or(kAuditPageDefault);
  filter.cursor = query.text("cursor");
  return filter;
}

// A run that was under way when an earlier life of the gateway was cut off has no duration:
// its real end is not known.
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
  append_member(out, "app_name", run.app);
  append_member(out, "agent", run.agent);
  append_member(out, "model", unless_empty(run.model));
  append_member(out, "state", end ? std::string_view(end->state) : "running");
  append_member(out, "started_at", run.started_at);
  append_member(out, "ended_at", end ? std::optional(end->ended_at) : std::nullopt);
  append_member(out, "prompt_bytes", run.prompt_bytes);
  append_member(out, "result_bytes", ended.result_bytes);
  append_member(out, "duration_ms", end ? duration_of(*end) : std::nullopt);
  append_member(out, "outcome", unless_empty(ended.outcome));
  append_member(out, "error", ended.error);
  append_member(out, "stop_reason", ended.stop_reason);
  append_member(out, "exit_code", ended.exit_code);
  append_member(out, "exit_signal", ended.exit_signal);
  append_member(out, "cost_usd", ended.cost_usd);
  append_member(out, "usage", ended.usage);
  append_member(out, "instance_id", unless_empty(run.instance_id));
  out += '}';
}

void append_page_end(std::string& out, std::size_t count,
                     const std::optional<std::string>& next_cursor) {
  out += ']';
  append_member(out, "count", count);
  append_member(out, "next_cursor", next_cursor);
  out += '}';
}

Task<Response> list_runs(const RunRows* rows, Request* request) {
  Query query(request->query);
  AuditFilter filter = filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  std::string body = R"({"runs":[)";
  for (const RunRecord& record : page->runs) {
    if (body.back() != '[') body += ',';
    append_run(body, record);
  }
  append_page_end(body, page->runs.size(), page->next_cursor);
  co_return json_response(std::move(body));
}

Task<Response> list_sessions(const SessionRows* rows, const Sessions* sessions, Request* request) {
  Query query(request->query);
  SessionFilter filter;
  filter.audit = filter_of(query);
  filter.includes_closed = query.flag("include_closed").value_or(true);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  co_return session_list(std::move(page->sessions), page->next_cursor, [sessions](Session session) {
    return sessions->view_of(std::move(session));
  });
}

void append_event(std::string& out, const AuditRecord& record) {
  out += '{';
  append_member(out, "session_id", unless_empty(record.session_id));
  append_member(out, "app_name", record.app);
  append_member(out, "event", record.event.event);
  append_member(out, "at", record.event.at);
  append_name(out, "meta");
  out += object_or_empty(record.event.meta);
  out += '}';
}

Task<Response> list_events(const AuditRows* rows, Request* request) {
  Query query(request->query);
  AuditFilter filter = filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  std::string body = R"({"events":[)";
  for (const AuditRecord& record : page->events) {
    if (body.back() != '[') body += ',';
    append_event(body, record);
  }
  append_page_end(body, page->events.size(), page->next_cursor);
  co_return json_response(std::move(body));
}

}  // namespace

void add_audit_routes(Endpoints& endpoints, AuditSources sources, Sessions& sessions) {
  endpoints.push_back(
      {"GET", "/admin/runs", Permit::admin, Body::none,
       [rows = &sources.runs](Caller, Request* request) { return list_runs(rows, request); }});
  endpoints.push_back({"GET", "/admin/sessions", Permit::admin, Body::none,
                       [rows = &sources.sessions, all = &sessions](Caller, Request* request) {
                         return list_sessions(rows, all, request);
                       }});
  endpoints.push_back(
      {"GET", "/admin/events", Permit::admin, Body::none,
       [rows = &sources.audit](Caller, Request* request) { return list_events(rows, request); }});
}

}  // namespace clawdforge
