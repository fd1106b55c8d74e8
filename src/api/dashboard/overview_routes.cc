#include "api/dashboard/overview_routes.h"

#include <memory>

#include "base/version.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

Task<Response> overview(std::shared_ptr<const OverviewSources> sources) {
  const std::string_view trouble = sources->trouble();
  std::string body = "{";
  append_member(body, "version", kVersion);
  append_member(body, "instance_id", sources->instance_id);
  append_member(body, "started_at", sources->started_at);
  append_member(body, "now", sources->clock.now());
  append_member(body, "ready", trouble.empty());
  append_member(body, "trouble", unless_empty(trouble));
  append_member(body, "apps", sources->apps());
  append_member(body, "permissions_open", sources->questions_open());
  append_name(body, "rooms");
  body += '[';
  for (const Room& room : sources->rooms()) {
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "name", room.name);
    append_member(body, "used", room.used);
    append_member(body, "max", room.max);
    append_member(body, "at_max", room.at_max);
    body += '}';
  }
  body += "]}";
  co_return json_response(std::move(body));
}

Task<Response> config(std::shared_ptr<const OverviewSources> sources) {
  co_return json_response(sources->config());
}

}  // namespace

void add_overview_routes(Endpoints& endpoints, OverviewSources sources) {
  const auto kept = std::make_shared<const OverviewSources>(std::move(sources));
  endpoints.push_back({"GET", "/admin/overview", Permit::admin, Body::none,
                       [kept](Caller, Request*) { return overview(kept); }});
  endpoints.push_back({"GET", "/admin/config", Permit::admin, Body::none,
                       [kept](Caller, Request*) { return config(kept); }});
}

}  // namespace clawdforge
