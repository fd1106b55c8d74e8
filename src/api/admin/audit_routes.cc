#include "api/admin/audit_routes.h"

#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/shapes/audit_page.h"
#include "api/shapes/run_state.h"
#include "api/shapes/session_state.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

AuditFilter filter_of(Query& query) {
  AuditFilter filter = audit_filter_of(query);
  if (auto app = query.text("app")) filter.app = AppName(std::move(*app));
  return filter;
}

Task<Response> list_runs(const RunRows* rows, Request* request) {
  Query query(request->query);
  AuditFilter filter = filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
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
  auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  co_return session_list(std::move(page->sessions), page->next_cursor, [sessions](Session session) {
    return sessions->view_of(std::move(session));
  });
}

void append_event(std::string& out, const AuditRecord& record) {
  out += '{';
  append_member(out, "session_id", unless_empty(record.session_id.str()));
  append_member(out, "app_name", record.app.str());
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
