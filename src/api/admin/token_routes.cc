#include "api/admin/token_routes.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::size_t kCidrsPerAppMax = 64;
constexpr std::int64_t kCountMax = 1'000'000;  // of sessions or runs an app may be allowed

void append_cidrs(std::string& out, const std::vector<Cidr>& cidrs) {
  out += R"("ip_cidrs":[)";
  for (const Cidr& cidr : cidrs) {
    if (out.back() != '[') out += ',';
    append_json_string(out, cidr.text());
  }
  out += ']';
}

void append_number(std::string& out, std::string_view name, std::optional<std::int64_t> number) {
  out.append(",\"").append(name).append("\":");
  out += number ? std::to_string(*number) : "null";
}

void append_settings(std::string& out, const App& app) {
  append_cidrs(out, app.ip_cidrs);
  out += R"(,"event_format":)";
  if (app.event_format) {
    append_json_string(out, name_of(*app.event_format));
  } else {
    out += "null";
  }
  append_number(out, "max_sessions", app.sessions_max);
  append_number(out, "max_runs", app.runs_max);
}

Result<NewApp> parse_new_app(const Request& request) {
  auto body = parse_json_object(request.body);
  if (!body) return std::unexpected(body.error());
  Fields fields(*body);
  NewApp app;
  if (!fields.has("name")) fields.wrong("name", "is required");
  if (auto name = fields.text("name")) {
    if (!is_app_name(*name)) {
      fields.wrong("name", "must be 1 to 64 of the characters a-z, 0-9, _ and -");
    }
    app.name = std::move(*name);
  }
  if (auto cidrs = fields.texts("ip_cidrs", kCidrsPerAppMax)) {
    for (const std::string& text : *cidrs) {
      auto cidr = Cidr::parse(text);
      if (cidr) app.ip_cidrs.push_back(*cidr);
      if (!cidr)
        fields.wrong("ip_cidrs", "has a range that cannot be read: " + cidr.error().message);
    }
  }
  if (auto format = fields.text("event_format")) {
    app.event_format = event_format_from(*format);
    if (!app.event_format) fields.wrong("event_format", "must be acp or simple");
  }
  app.sessions_max = fields.integer("max_sessions", 1, kCountMax);
  app.runs_max = fields.integer("max_runs", 1, kCountMax);
  if (auto checked = fields.check(); !checked) return std::unexpected(checked.error());
  return app;
}

Response token_response(const MintedToken& minted) {
  std::string body = R"({"name":)";
  append_json_string(body, minted.app.name);
  body += R"(,"token":)";
  append_json_string(body, minted.token.reveal());
  body += ',';
  append_cidrs(body, minted.app.ip_cidrs);
  body += '}';
  return json_response(std::move(body));
}

Task<Response> mint(Apps* apps, Request* request) {
  auto app = parse_new_app(*request);
  if (!app) co_return problem(app.error(), request->id);
  auto minted = co_await apps->mint(std::move(*app));
  if (!minted) co_return problem(minted.error(), request->id);
  co_return token_response(*minted);
}

Task<Response> list(Apps* apps) {
  std::string body = R"({"tokens":[)";
  for (const App& app : apps->list()) {
    if (body.back() != '[') body += ',';
    body += R"({"name":)";
    append_json_string(body, app.name);
    body += ',';
    append_settings(body, app);
    append_number(body, "created_at", unix_seconds(app.created_at));
    append_number(body, "last_used_at",
                  app.last_used_at ? std::optional(unix_seconds(*app.last_used_at)) : std::nullopt);
    body += '}';
  }
  body += "]}";
  co_return json_response(std::move(body));
}

Task<Response> rotate(Apps* apps, Sessions* sessions, Request* request) {
  auto minted = co_await apps->rotate(request->params.front());
  if (!minted) co_return problem(minted.error(), request->id);
  sessions->recheck_readers();  // those who read with the old token are cut off
  co_return token_response(*minted);
}

// The ledger has closed the app's sessions together with its token; here what lives of
// them is ended. If the ledger cannot be asked for them now, the sweeper does it.
Task<Response> revoke(Apps* apps, Sessions* sessions, Request* request) {
  auto revoked = co_await apps->revoke(request->params.front());
  if (!revoked) co_return problem(revoked.error(), request->id);
  sessions->recheck_readers();
  Response response = json_response(R"({"ok":true})");
  const auto followed = co_await sessions->closer().follow_ledger();
  if (!followed) response.detail = "its agents are left to the sweeper: " + followed.error().detail;
  co_return response;
}

Task<Response> whoami(Caller caller) {
  if (caller.kind == CallerKind::admin) co_return json_response(R"({"ok":true,"kind":"admin"})");
  std::string body = R"({"ok":true,"kind":"app","name":)";
  append_json_string(body, caller.app->name);
  body += ',';
  append_settings(body, *caller.app);
  body += '}';
  co_return json_response(std::move(body));
}

}  // namespace

void add_token_routes(Endpoints& endpoints, Apps& apps, Sessions& sessions) {
  Apps* const all = &apps;
  endpoints.push_back({"POST", "/admin/tokens", Permit::admin, Body::json,
                       [all](Caller, Request* request) { return mint(all, request); }});
  endpoints.push_back({"GET", "/admin/tokens", Permit::admin, Body::none,
                       [all](Caller, Request*) { return list(all); }});
  endpoints.push_back(
      {"POST", "/admin/tokens/{name}/rotate", Permit::admin, Body::none,
       [all, held = &sessions](Caller, Request* request) { return rotate(all, held, request); }});
  endpoints.push_back(
      {"DELETE", "/admin/tokens/{name}", Permit::admin, Body::none,
       [all, held = &sessions](Caller, Request* request) { return revoke(all, held, request); }});
  endpoints.push_back({"GET", "/whoami", Permit::app_or_admin, Body::none,
                       [](Caller caller, Request*) { return whoami(std::move(caller)); }});
}

}  // namespace clawdforge
