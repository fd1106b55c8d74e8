#include "api/dashboard/page_routes.h"

#include <fmt/format.h>

#include "api/core/problem.h"
#include "api/dashboard/asset_response.h"
#include "base/version.h"
#include "http/message/accepted.h"

namespace clawdforge {
namespace {

// Relative, so that they hold below a proxy's path.
Response links_response() {
  Response response = json_response(fmt::format(
      R"({{"name":"clawdforge","version":"{}","links":{{"openapi":"openapi.json","health":"healthz",)"
      R"("ready":"readyz","metrics":"metrics","docs":"docs/"}}}})",
      kVersion));
  response.headers.emplace_back("Vary", "Accept");
  return response;
}

Task<Response> page(std::span<const Asset> assets, Request* request) {
  const Asset* const asset = asset_named(assets, kPageName);
  if (asset == nullptr || !accepts_type(request->header("Accept").value_or(""), "text/html")) {
    co_return links_response();
  }
  co_return asset_response(*asset, *request, "Accept, Accept-Encoding");
}

Task<Response> file(std::span<const Asset> assets, Request* request) {
  const std::string& name = request->params.front();
  const Asset* const asset = name == kPageName ? nullptr : asset_named(assets, name);
  co_return asset == nullptr ? no_asset_response(*request)
                             : asset_response(*asset, *request, "Accept-Encoding");
}

}  // namespace

void add_page_routes(Endpoints& endpoints, std::span<const Asset> assets) {
  endpoints.push_back(
      {.method = "GET",
       .pattern = "/",
       .permit = Permit::anybody,
       .body = Body::none,
       .answer = [assets](Caller, Request* request) { return page(assets, request); },
       .answers_while_draining = true});
  endpoints.push_back(
      {.method = "GET",
       .pattern = "/ui/{name}",
       .permit = Permit::anybody,
       .body = Body::none,
       .answer = [assets](Caller, Request* request) { return file(assets, request); },
       .answers_while_draining = true});
}

}  // namespace clawdforge
