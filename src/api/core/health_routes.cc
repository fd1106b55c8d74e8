#include "api/core/health_routes.h"

#include <fmt/format.h>

#include "api/core/openapi_json.h"
#include "api/core/problem.h"
#include "base/json_text.h"
#include "base/refusals.h"
#include "base/version.h"

namespace clawdforge {
namespace {

void append_program(std::string& out, std::string_view name, const ProgramFinding& found) {
  out += fmt::format(R"("{0}_present":{1},"{0}_version":)", name, found.is_present);
  append_json_string(out, found.version);
  out += ',';
}

std::string time_or_null(std::optional<TimePoint> time) {
  return time ? std::to_string(unix_seconds(*time)) : "null";
}

void append_login(std::string& out, const LoginHealth& login) {
  out += fmt::format(
      R"("claude_login":{{"state":"{}","expires_at":{},"sign_in_ends_at":{},"ends_soon":{}}},)",
      login.state, time_or_null(login.expires_at), time_or_null(login.sign_in_ends_at),
      login.ends_soon);
}

Task<Response> healthz(const HealthSources* sources) {
  std::string body = fmt::format(R"({{"ok":true,"version":"{}",)", kVersion);
  append_program(body, "claude", sources->claude);
  append_program(body, "acpx", sources->acpx);
  append_login(body, sources->login());
  body += fmt::format(R"("open_sessions":{},"jail":"{}","limits":"{}"}})", sources->open_sessions(),
                      sources->jail, sources->limits);
  co_return json_response(std::move(body));
}

Task<Response> readyz(const HealthSources* sources, Request* request) {
  if (sources->is_draining) {
    const auto refused = fail_for_now(Errc::unavailable, "draining",
                                      "The gateway is shutting down.", std::chrono::seconds(5));
    co_return problem(refused.error(), request->id);
  }
  if (!sources->is_ledger_healthy()) {
    co_return problem(ledger_unavailable({}).error(), request->id);
  }
  if (sources->is_disk_stalled()) co_return problem(disk_stalled().error(), request->id);
  co_return json_response(R"({"ok":true})");
}

Task<Response> metrics(const HealthSources* sources) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  sources->show_depths();
  response.body = sources->metrics.render();
  co_return response;
}

Task<Response> openapi() { co_return json_response(std::string(kOpenApiJson)); }

}  // namespace

void add_health_routes(Endpoints& endpoints, const HealthSources& sources,
                       bool metrics_without_token) {
  const HealthSources* from = &sources;
  const auto add = [&endpoints](std::string_view path, Permit permit, Answer answer) {
    endpoints.push_back({.method = "GET",
                         .pattern = path,
                         .permit = permit,
                         .body = Body::none,
                         .answer = std::move(answer),
                         .answers_while_draining = true});
  };
  add("/healthz", Permit::anybody, [from](Caller, Request*) { return healthz(from); });
  add("/readyz", Permit::anybody,
      [from](Caller, Request* request) { return readyz(from, request); });
  add("/metrics", metrics_without_token ? Permit::anybody : Permit::admin,
      [from](Caller, Request*) { return metrics(from); });
  add("/openapi.json", Permit::anybody, [](Caller, Request*) { return openapi(); });
}

}  // namespace clawdforge
