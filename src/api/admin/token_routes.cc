#include "api/admin/token_routes.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "api/admin/token_fields.h"
#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "json/json_members.h"
#include "sessions/session_closer.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

// The body, and an app that has its settings. Named are the fields that are not known.
struct ParsedSettings {
  json::object body;
  App app;
};

Result<ParsedSettings> parse_settings(Request& request, bool has_name) {
  auto body = parse_json_object(request.body);
  if (!body) return std::unexpected(body.error());
  ParsedSettings parsed{.body = std::move(*body), .app = {}};
  Fields fields(parsed.body);
  if (has_name) {
    if (!fields.has("name")) fields.wrong("name", "is required");
    if (auto name = fields.text("name")) {
      if (!is_app_name(*name)) {
        fields.wrong("name", "must be 1 to 64 of the characters a-z, 0-9, _ and -");
      }
      parsed.app.name = AppName(std::move(*name));
    }
  }
  take_settings(fields, parsed.app);
  std::string ignored;
  const auto checked = fields.check(&ignored);
  name_ignored_fields(request, std::move(ignored));
  if (!checked) return std::unexpected(checked.error());
  return parsed;
}

// Shown once, when it is made.
void append_secret(std::string& out, const Secret& secret) {
  if (!secret.empty()) append_member(out, "webhook_secret", secret.reveal());
}

void append_app(std::string& out, const App& app, const Secret& secret = {}) {
  out += '{';
  append_member(out, "name", app.name.str());
  append_limits(out, app);
  append_policy(out, app.policy);
  append_member(out, "created_at", app.created_at);
  append_member(out, "last_used_at", app.last_used_at);
  append_secret(out, secret);
  out += '}';
}

Response token_response(const MintedToken& minted) {
  std::string body = "{";
  append_member(body, "name", minted.app.name.str());
  append_member(body, "token", minted.token.reveal());
  append_cidrs(body, minted.app.ip_cidrs);
  append_secret(body, minted.webhook_secret);
  body += '}';
  return json_response(std::move(body));
}

Task<Response> mint(Apps* apps, Caller caller, Request* request) {
  auto parsed = parse_settings(*request, true);
  if (!parsed) co_return problem(parsed.error(), request->id);
  auto minted = co_await apps->mint(std::move(parsed->app), std::move(caller.admin));
  if (!minted) co_return problem(minted.error(), request->id);
  co_return token_response(*minted);
}

// The ledger applies the fields to the row as it is then: of two changes at once none is lost.
Task<Response> change(Apps* apps, Caller caller, Request* request) {
  auto parsed = parse_settings(*request, false);
  if (!parsed) co_return problem(parsed.error(), request->id);
  const auto body = std::make_shared<const json::object>(std::move(parsed->body));
  const auto apply = [body](App& app) {
    Fields fields(*body);
    take_settings(fields, app);
  };
  auto changed =
      co_await apps->change(AppName(request->params.front()), apply, std::move(caller.admin));
  if (!changed) co_return problem(changed.error(), request->id);
  std::string answer;
  append_app(answer, changed->app, changed->webhook_secret);
  co_return json_response(std::move(answer));
}

Task<Response> list(Apps* apps) {
  std::string body = R"({"tokens":[)";
  for (const App& app : apps->list()) {
    if (body.back() != '[') body += ',';
    append_app(body, app);
  }
  body += "]}";
  co_return json_response(std::move(body));
}

Task<Response> rotate(Apps* apps, Sessions* sessions, Caller caller, Request* request) {
  auto minted = co_await apps->rotate(AppName(request->params.front()), std::move(caller.admin));
  if (!minted) co_return problem(minted.error(), request->id);
  sessions->recheck_readers();  // those who read with the old token are cut off
  co_return token_response(*minted);
}

Task<Response> rotate_secret(Apps* apps, Caller caller, Request* request) {
  AppName name(request->params.front());
  const auto secret = co_await apps->rotate_webhook_secret(name, std::move(caller.admin));
  if (!secret) co_return problem(secret.error(), request->id);
  std::string body = "{";
  append_member(body, "name", name.str());
  append_secret(body, *secret);
  body += '}';
  co_return json_response(std::move(body));
}

// The ledger has closed the app's sessions together with its token; here what lives of
// them is ended. If the ledger cannot be asked for them now, the sweeper does it.
Task<Response> revoke(Apps* apps, AppRemovals* removals, Caller caller, Request* request) {
  auto revoked = co_await apps->revoke(AppName(request->params.front()), std::move(caller.admin));
  if (!revoked) co_return problem(revoked.error(), request->id);
  co_await removals->follow();
  co_return json_response(R"({"ok":true})");
}

}  // namespace

void add_token_routes(Endpoints& endpoints, Apps& apps, Sessions& sessions, AppRemovals& removals) {
  Apps* const all = &apps;
  endpoints.push_back(
      {"POST", "/admin/tokens", Permit::admin, Body::json,
       [all](Caller caller, Request* request) { return mint(all, std::move(caller), request); }});
  endpoints.back().needs_proof = true;
  endpoints.push_back({"GET", "/admin/tokens", Permit::admin, Body::none,
                       [all](Caller, Request*) { return list(all); }});
  endpoints.push_back(
      {"PATCH", "/admin/tokens/{name}", Permit::admin, Body::json,
       [all](Caller caller, Request* request) { return change(all, std::move(caller), request); }});
  endpoints.push_back({"POST", "/admin/tokens/{name}/rotate", Permit::admin, Body::none,
                       [all, held = &sessions](Caller caller, Request* request) {
                         return rotate(all, held, std::move(caller), request);
                       }});
  endpoints.back().needs_proof = true;
  endpoints.push_back({"POST", "/admin/tokens/{name}/webhook-secret", Permit::admin, Body::none,
                       [all](Caller caller, Request* request) {
                         return rotate_secret(all, std::move(caller), request);
                       }});
  endpoints.back().needs_proof = true;
  endpoints.push_back({"DELETE", "/admin/tokens/{name}", Permit::admin, Body::none,
                       [all, ended = &removals](Caller caller, Request* request) {
                         return revoke(all, ended, std::move(caller), request);
                       }});
  endpoints.back().needs_proof = true;
}

}  // namespace clawdforge
