#include "api/admin/audit_routes.h"

#include <array>
#include <boost/json.hpp>

#include "api/admin/export_stream.h"
#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/shapes/audit_page.h"
#include "api/shapes/run_state.h"
#include "api/shapes/session_state.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

AuditFilter filter_of(Query& query) {
  AuditFilter filter = audit_filter_of(query);
  if (auto app = query.text("app")) filter.app = AppName(std::move(*app));
  return filter;
}

// Of a file, whose pages are as long as they may be.
constexpr std::int64_t kExportPageRows = 1'000;

AuditFilter page_after(AuditFilter filter, std::optional<std::string> cursor) {
  filter.limit = kExportPageRows;
  if (cursor) filter.cursor = std::move(cursor);
  return filter;
}

Async<ExportPage> run_rows_after(const RunRows* rows, AuditFilter filter) {
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return std::unexpected(page.error());
  ExportPage out{.rows = {}, .next_cursor = page->next_cursor};
  for (const RunRecord& record : page->runs) {
    append_run_state(out.rows.emplace_back(), record, RunReader::admin);
  }
  co_return out;
}

Async<ExportPage> session_rows_after(const SessionRows* rows, const Sessions* sessions,
                                     SessionFilter filter) {
  auto page = co_await rows->page(std::move(filter));
  if (!page) co_return std::unexpected(page.error());
  ExportPage out{.rows = {}, .next_cursor = page->next_cursor};
  for (Session& session : page->sessions) {
    append_session_state(out.rows.emplace_back(), sessions->view_of(std::move(session)));
  }
  co_return out;
}

Task<Response> list_runs(const RunRows* rows, Request* request) {
  Query query(request->query);
  AuditFilter filter = filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  if (const auto form = export_form_of(*request)) {
    static constexpr std::array<std::string_view, 17> kColumns{
        "run_id",   "app_name",     "agent",        "model", "state",       "started_at",
        "ended_at", "duration_ms",  "outcome",      "error", "stop_reason", "exit_code",
        "cost_usd", "prompt_bytes", "result_bytes", "usage", "instance_id"};
    co_return export_response({.form = *form,
                               .what = "runs",
                               .filter = std::string(request->query),
                               .columns = kColumns,
                               .next = [rows, filter](std::optional<std::string> cursor) {
                                 return run_rows_after(rows, page_after(filter, std::move(cursor)));
                               }});
  }
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  co_return run_list(*page, RunReader::admin);
}

Task<Response> list_sessions(const SessionRows* rows, const Sessions* sessions, Request* request) {
  Query query(request->query);
  SessionFilter filter;
  filter.audit = filter_of(query);
  filter.includes_closed = query.flag("include_closed").value_or(true);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  if (const auto form = export_form_of(*request)) {
    static constexpr std::array<std::string_view, 13> kColumns{
        "session_id",   "app_name",  "agent",        "model",      "created_at",
        "last_turn_at", "closed_at", "close_reason", "turn_count", "cost_usd",
        "usage",        "meta",      "workspace"};
    co_return export_response({.form = *form,
                               .what = "sessions",
                               .filter = std::string(request->query),
                               .columns = kColumns,
                               .next = [rows, sessions, filter](std::optional<std::string> cursor) {
                                 SessionFilter next = filter;
                                 next.audit = page_after(filter.audit, std::move(cursor));
                                 return session_rows_after(rows, sessions, std::move(next));
                               }});
  }
  auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  co_return session_list(std::move(page->sessions), page->next_cursor, [sessions](Session session) {
    SessionView view = sessions->view_of(std::move(session));
    if (view.is_live) view.memory_bytes = sessions->memory_of(view.session.id);
    return view;
  });
}

// Who did it, in one word. What is written down says it in several ways.
std::string actor_of(const AuditEvent& event) {
  if (event.event == "sweep_close" || event.event == "hard_delete") return "sweeper";
  if (event.event == "interrupted" || event.event.starts_with("login.") ||
      event.event.starts_with("limit.") || event.event == "net.refused") {
    return "gateway";
  }
  const auto parsed = parse_json(event.meta, kJsonDepthMax);
  const json::object* const meta = parsed ? parsed->if_object() : nullptr;
  const auto text = [&](std::string_view name) {
    const json::value* const value = meta == nullptr ? nullptr : meta->if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  if (event.event.starts_with("sign_")) {
    const std::string browser = text("browser");
    const std::string by = text("by");
    if (by == "admin_token") return "owner";
    return by == "admin_socket" ? "cli" : "browser:" + browser;
  }
  const std::string by = text("by");
  if (by == "admin_token") return "owner";
  if (by == "admin_socket") return "cli";
  if (by == "browser") return "browser:" + text("name");
  if (by == "owner") return by;
  return by == "rule" || by == "expiry" ? "rule" : "app";
}

void append_event(std::string& out, const AuditRecord& record) {
  out += '{';
  append_member(out, "session_id", unless_empty(record.session_id.str()));
  append_member(out, "app_name", unless_empty(record.app.str()));
  append_member(out, "event", record.event.event);
  append_member(out, "at", record.event.at);
  append_member(out, "actor", actor_of(record.event));
  append_name(out, "meta");
  out += object_or_empty(record.event.meta);
  out += '}';
}

Async<ExportPage> event_rows_after(const AuditRows* rows, AuditFilter filter) {
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return std::unexpected(page.error());
  ExportPage out{.rows = {}, .next_cursor = page->next_cursor};
  for (const AuditRecord& record : page->events) append_event(out.rows.emplace_back(), record);
  co_return out;
}

Task<Response> list_events(const AuditRows* rows, Request* request) {
  Query query(request->query);
  AuditFilter filter = filter_of(query);
  filter.event = query.text("event");
  if (auto id = query.text("session_id")) filter.session_id = SessionId(std::move(*id));
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  if (const auto form = export_form_of(*request)) {
    static constexpr std::array<std::string_view, 6> kColumns{"at",    "event",      "app_name",
                                                              "actor", "session_id", "meta"};
    co_return export_response({.form = *form,
                               .what = "events",
                               .filter = std::string(request->query),
                               .columns = kColumns,
                               .next = [rows, filter](std::optional<std::string> cursor) {
                                 return event_rows_after(rows,
                                                         page_after(filter, std::move(cursor)));
                               }});
  }
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
