#include "api/workspaces/workspace_routes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "api/core/problem.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

// Without a policy: for the admin, who sees all.
Task<Response> list(std::shared_ptr<const ListWorkspaces> workspaces, std::optional<Policy> policy,
                    Request* request) {
  const auto listings = co_await (*workspaces)();
  if (!listings) co_return problem(listings.error(), request->id);
  std::string body = R"({"workspaces":[)";
  for (const WorkspaceListing& workspace : *listings) {
    if (policy && !allows_workspace(*policy, workspace.name)) continue;
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "name", workspace.name);
    append_member(body, "mode", name_of(workspace.mode));
    append_member(body, "present", workspace.is_present);
    body += '}';
  }
  co_return json_response(body + "]}");
}

}  // namespace

void add_workspace_routes(Endpoints& endpoints, ListWorkspaces workspaces,
                          const Policies& policies) {
  auto all = std::make_shared<const ListWorkspaces>(std::move(workspaces));
  endpoints.push_back({"GET", "/workspaces", Permit::app_or_admin, Body::none,
                       [all, of = &policies](Caller caller, Request* request) {
                         std::optional<Policy> policy;
                         if (caller.kind == CallerKind::app) policy = of->of(*caller.app);
                         return list(all, std::move(policy), request);
                       }});
}

}  // namespace clawdforge
