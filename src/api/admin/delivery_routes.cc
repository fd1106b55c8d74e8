#include "api/admin/delivery_routes.h"

#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/shapes/audit_page.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

void append_delivery(std::string& out, const Delivery& delivery) {
  out += '{';
  append_member(out, "delivery_id", delivery.id.str());
  append_member(out, "app_name", delivery.app.str());
  append_member(out, "url", delivery.url);
  append_member(out, "type", delivery.type);
  append_member(out, "state", name_of(delivery.state));
  append_member(out, "attempts", delivery.attempts);
  append_member(out, "created_at", delivery.created_at);
  append_member(out, "next_at", delivery.next_at);
  append_member(out, "ended_at", delivery.ended_at);
  append_member(out, "last_status", delivery.last_status);
  append_member(out, "last_error", unless_empty(delivery.last_error));
  out += '}';
}

DeliveryFilter delivery_filter_of(Query& query) {
  DeliveryFilter filter;
  filter.audit = audit_filter_of(query);
  if (auto app = query.text("app")) filter.audit.app = AppName(std::move(*app));
  if (const auto state = query.text("state")) {
    filter.state = delivery_state_from(*state);
    if (!filter.state) query.wrong("state", "must be waiting, delivered or dead");
  }
  return filter;
}

Task<Response> list_deliveries(const DeliveryRows* rows, Request* request) {
  Query query(request->query);
  DeliveryFilter filter = delivery_filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto page = co_await rows->page(std::move(filter));
  if (!page) co_return problem(page.error(), request->id);
  std::string body = R"({"deliveries":[)";
  for (const Delivery& delivery : page->deliveries) {
    if (body.back() != '[') body += ',';
    append_delivery(body, delivery);
  }
  append_page_end(body, page->deliveries.size(), page->next_cursor);
  co_return json_response(std::move(body));
}

Task<Response> retry_delivery(Webhooks* webhooks, Request* request) {
  const auto retried = co_await webhooks->retry(DeliveryId(request->params.front()));
  if (!retried) co_return problem(retried.error(), request->id);
  std::string body;
  append_delivery(body, *retried);
  co_return json_response(std::move(body));
}

}  // namespace

void add_delivery_routes(Endpoints& endpoints, const DeliveryRows& rows, Webhooks& webhooks) {
  endpoints.push_back(
      {"GET", "/admin/deliveries", Permit::admin, Body::none,
       [all = &rows](Caller, Request* request) { return list_deliveries(all, request); }});
  endpoints.push_back(
      {"POST", "/admin/deliveries/{id}/retry", Permit::admin, Body::none,
       [sender = &webhooks](Caller, Request* request) { return retry_delivery(sender, request); }});
}

}  // namespace clawdforge
