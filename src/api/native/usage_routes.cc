#include "api/native/usage_routes.h"

#include <utility>

#include "api/core/problem.h"
#include "api/shapes/usage_answer.h"

namespace clawdforge {
namespace {

bool accepts_csv(const Request& request) {
  return request.header("Accept").value_or("").contains("text/csv");
}

Task<Response> show_usage(const UsageRows* rows, const Clock* clock, Caller caller,
                          Request* request) {
  auto asked = parse_usage(request->query, clock->now());
  if (!asked) co_return problem(asked.error(), request->id);
  if (caller.app) asked->query.app = caller.app->name;
  const auto found = co_await rows->read(asked->query);
  if (!found) co_return problem(found.error(), request->id);
  if (asked->is_series) co_return json_response(usage_series(*asked, *found));
  if (!accepts_csv(*request)) co_return json_response(usage_json(*asked, *found));
  Response response;
  response.content_type = "text/csv; charset=utf-8";
  response.body = usage_csv(*asked, *found);
  co_return response;
}

}  // namespace

void add_usage_routes(Endpoints& endpoints, const UsageRows& rows, const Clock& clock) {
  const auto answer = [from = &rows, now = &clock](Caller caller, Request* request) {
    return show_usage(from, now, std::move(caller), request);
  };
  endpoints.push_back({"GET", "/usage", Permit::app, Body::none, answer});
  endpoints.push_back({"GET", "/admin/usage", Permit::admin, Body::none, answer});
}

}  // namespace clawdforge
