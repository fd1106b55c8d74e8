#include "api/admin/sweep_routes.h"

#include <fmt/format.h>

#include "api/core/problem.h"

namespace clawdforge {
namespace {

Task<Response> sweep(Sweeper* sweeper, Request* request) {
  const auto swept = co_await sweeper->tick();
  if (!swept) co_return problem(swept.error(), request->id);
  co_return json_response(
      fmt::format(R"({{"ok":true,"soft_closed":{},"hard_deleted":{},"files_deleted":{}}})",
                  swept->soft_closed, swept->hard_deleted, swept->files_deleted));
}

}  // namespace

void add_sweep_routes(Endpoints& endpoints, Sweeper& sweeper) {
  Sweeper* const at = &sweeper;
  endpoints.push_back({"POST", "/admin/sweep", Permit::admin, Body::none,
                       [at](Caller, Request* request) { return sweep(at, request); }});
}

}  // namespace clawdforge
