#include "api/dashboard/docs_routes.h"

#include "api/dashboard/asset_response.h"

namespace clawdforge {
namespace {

// All links of the pages are relative to /docs/. So is this one, so that it holds below a proxy's
// path.
Task<Response> to_docs() {
  Response response;
  response.status = 302;
  response.content_type = "text/plain; charset=utf-8";
  response.headers.emplace_back("Location", "docs/");
  response.body = "The documents are at docs/.\n";
  co_return response;
}

Task<Response> document(std::span<const Asset> assets, std::string name, Request* request) {
  const Asset* const asset = asset_named(assets, name);
  co_return asset == nullptr ? no_asset_response(*request)
                             : asset_response(*asset, *request, "Accept-Encoding");
}

}  // namespace

void add_docs_routes(Endpoints& endpoints, std::span<const Asset> assets) {
  const auto add = [&endpoints](std::string_view pattern, Answer answer) {
    endpoints.push_back({.method = "GET",
                         .pattern = pattern,
                         .permit = Permit::anybody,
                         .body = Body::none,
                         .answer = std::move(answer),
                         .answers_while_draining = true});
  };
  add("/docs", [](Caller, Request*) { return to_docs(); });
  add("/docs/", [assets](Caller, Request* request) {
    return document(assets, std::string(kPageName), request);
  });
  add("/docs/{name}", [assets](Caller, Request* request) {
    return document(assets, request->params.front(), request);
  });
}

}  // namespace clawdforge
