#include "api/dashboard/sign_in_routes.h"

#include <algorithm>
#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "base/refusals.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kCodeSecondsDefault = 120;
constexpr std::int64_t kCodeSecondsMax = 600;
constexpr std::size_t kBrowserNameBytesMax = 64;

// What a caller shows to be let in: a token or a code.
struct Proof {
  Secret token;
  Secret code;
  std::string name;
  bool stays = false;

  std::string_view kind() const { return code.empty() ? "token" : "code"; }
};

IpAddress origin_of_call(const Request& request) { return request.origin.value_or(request.peer); }

bool is_shown_name(std::string_view text) {
  return !text.empty() && text.size() <= kBrowserNameBytesMax &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Result<Proof> parse_proof(Request& request, bool is_sign_in) {
  auto body = parse_json_object(request.body);
  if (!body) return std::unexpected(body.error());
  Fields fields(*body);
  Proof proof;
  if (auto token = fields.text("token")) proof.token = Secret(std::move(*token));
  if (auto code = fields.text("code")) proof.code = Secret(std::move(*code));
  if (!fields.has("token") && !fields.has("code")) {
    fields.wrong("token", "is required, or code");
  } else if (fields.has("token") && fields.has("code")) {
    fields.wrong("code", "cannot go with token");
  }
  if (is_sign_in) {
    proof.stays = fields.boolean("stay").value_or(false);
    proof.name = fields.text("name").value_or("");
    if (fields.has("name") && !is_shown_name(proof.name)) {
      fields.wrong("name", "must be 1 to 64 bytes without control characters");
    }
  }
  std::string ignored;
  const auto checked = fields.check(&ignored);
  name_ignored_fields(request, std::move(ignored));
  if (!checked) return std::unexpected(checked.error());
  if (proof.name.empty()) proof.name = browser_name_of(request.header("User-Agent").value_or(""));
  return proof;
}

// Who the proof is of: an app, or null for the owner.
struct Holder {
  std::shared_ptr<const App> app;
};

Result<Holder> check_proof(const SignInParts& parts, const Proof& proof, const IpAddress& from) {
  if (!proof.code.empty()) {
    if (auto taken = parts.codes.take(proof.code.reveal()); !taken) {
      return std::unexpected(std::move(taken.error()));
    }
    return Holder{};
  }
  const std::string_view token = proof.token.reveal();
  if (auto app = parts.apps.find(token)) {
    const bool may_call =
        app->ip_cidrs.empty() ||
        std::ranges::any_of(app->ip_cidrs, [&](const Cidr& range) { return range.contains(from); });
    if (!may_call) {
      return fail(Errc::forbidden, "address_not_allowed",
                  "Calls from this address are not allowed here.");
    }
    return Holder{std::move(app)};
  }
  if (!token.empty() && equal_in_constant_time(sha256(token), parts.admin_digest)) return Holder{};
  return fail(Errc::unauthorized, "unauthorized",
              "This is neither the admin token nor an app's; clawdforge dashboard gives a link.");
}

// As everywhere: only what is wrong is limited, and what was made here once is not a guess.
Async<Holder> let_in(const SignInParts* parts, const Proof* proof, IpAddress from) {
  auto holder = check_proof(*parts, *proof, from);
  if (holder || holder.error().kind != Errc::unauthorized) co_return holder;
  const bool was_made = !proof->code.empty() && parts->codes.knows(proof->code.reveal());
  if (was_made) co_return holder;
  const auto now = Attempts::Time::clock::now();
  if (parts->attempts->is_over(from, now)) {
    co_return fail_for_now(Errc::over_quota, "too_many_attempts",
                           "Too many wrong tokens came from this address; try again later.",
                           parts->attempts->retry_after());
  }
  const Secret& shown = proof->code.empty() ? proof->token : proof->code;
  parts->attempts->count(from, sha256(shown.reveal()), now);
  auto noted =
      co_await parts->browsers.note_failure(proof->name, from.text(), std::string(proof->kind()));
  if (!noted) co_return std::unexpected(noted.error());
  co_return holder;
}

void append_browser(std::string& out, const Browser& browser) {
  out += '{';
  append_member(out, "id", browser.id);
  append_member(out, "name", browser.name);
  append_member(out, "kind", browser.app ? "app" : "admin");
  append_member(out, "app_name",
                browser.app ? std::optional(browser.app->str()) : std::optional<std::string>());
  append_member(out, "address", browser.address);
  append_member(out, "stays", browser.stays);
  append_member(out, "created_at", browser.created_at);
  append_member(out, "last_seen_at", browser.last_seen_at);
  append_member(out, "proof_until", browser.proved_at + kProofAgeMax);
  append_member(out, "expires_at", browser.expires_at);
  out += '}';
}

Task<Response> sign_in(const SignInParts* parts, Request* request) {
  const auto proof = parse_proof(*request, true);
  if (!proof) co_return problem(proof.error(), request->id);
  const IpAddress from = origin_of_call(*request);
  const auto holder = co_await let_in(parts, &*proof, from);
  if (!holder) co_return problem(holder.error(), request->id);
  auto signed_in = co_await parts->browsers.sign_in({.app = holder->app.get(),
                                                     .name = proof->name,
                                                     .address = from.text(),
                                                     .by = std::string(proof->kind()),
                                                     .stays = proof->stays});
  if (!signed_in) co_return problem(signed_in.error(), request->id);
  const Browser& browser = signed_in->browser;
  std::string body = R"({"ok":true)";
  append_member(body, "token", signed_in->token.reveal());
  append_member(body, "kind", browser.app ? "app" : "admin");
  append_name(body, "browser");
  append_browser(body, browser);
  body += '}';
  co_return json_response(std::move(body));
}

std::unexpected<Failure> no_browser() {
  return fail(Errc::forbidden, "wrong_token_kind", "This path takes a browser's token.");
}

Task<Response> sign_out(const SignInParts* parts, Caller caller, Request* request) {
  if (!caller.browser) co_return problem(no_browser().error(), request->id);
  AdminOrigin by{AdminDoor::browser, origin_of_call(*request).text(), caller.browser->name};
  const auto ended = co_await parts->browsers.end(caller.browser->id, std::move(by));
  if (!ended) co_return problem(ended.error(), request->id);
  co_return json_response(R"({"ok":true})");
}

// What the owner's browser has to show again before it makes or ends tokens.
Task<Response> prove(const SignInParts* parts, Caller caller, Request* request) {
  if (!caller.browser) co_return problem(no_browser().error(), request->id);
  const auto proof = parse_proof(*request, false);
  if (!proof) co_return problem(proof.error(), request->id);
  const auto holder = co_await let_in(parts, &*proof, origin_of_call(*request));
  if (!holder) co_return problem(holder.error(), request->id);
  if (holder->app) {
    const auto wrong = fail(Errc::unauthorized, "unauthorized", "This is not the admin token.");
    co_return problem(wrong.error(), request->id);
  }
  const auto proved = co_await parts->browsers.prove(caller.browser.get());
  if (!proved) co_return problem(proved.error(), request->id);
  co_return json_response(R"({"ok":true})");
}

Task<Response> make_code(const SignInParts* parts, Request* request) {
  auto body = parse_json_object(request->body);
  if (!body) co_return problem(body.error(), request->id);
  Fields fields(*body);
  const auto seconds = fields.integer("seconds", 1, kCodeSecondsMax);
  std::string ignored;
  const auto checked = fields.check(&ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!checked) co_return problem(checked.error(), request->id);
  const auto made = parts->codes.make(std::chrono::seconds(seconds.value_or(kCodeSecondsDefault)));
  std::string answer = "{";
  append_member(answer, "code", made.code.reveal());
  append_member(answer, "fragment", "#/in/" + std::string(made.code.reveal()));
  append_member(answer, "expires_at", made.expires_at);
  answer += '}';
  co_return json_response(std::move(answer));
}

Task<Response> list_browsers(const SignInParts* parts, Caller caller) {
  std::string body = R"({"browsers":[)";
  for (const Browser& browser : parts->browsers.list()) {
    if (body.back() != '[') body += ',';
    append_browser(body, browser);
    body.pop_back();
    append_member(body, "is_this_one", caller.browser && caller.browser->id == browser.id);
    body += '}';
  }
  body += "]}";
  co_return json_response(std::move(body));
}

Task<Response> end_browser(const SignInParts* parts, Caller caller, Request* request) {
  const auto ended = co_await parts->browsers.end(request->params.front(), std::move(caller.admin));
  if (!ended) co_return problem(ended.error(), request->id);
  co_return json_response(R"({"ok":true})");
}

}  // namespace

void add_sign_in_routes(Endpoints& endpoints, SignInParts parts) {
  const auto kept = std::make_shared<const SignInParts>(std::move(parts));
  endpoints.push_back(
      {.method = "POST",
       .pattern = "/ui/sign-in",
       .permit = Permit::anybody,
       .body = Body::json,
       .answer = [kept](Caller, Request* request) { return sign_in(kept.get(), request); },
       .body_bytes_max = kSmallBodyBytesMax,
       .is_for_own_page = true});
  endpoints.push_back({.method = "POST",
                       .pattern = "/ui/sign-out",
                       .permit = Permit::app_or_admin,
                       .body = Body::none,
                       .answer = [kept](Caller caller, Request* request) {
                         return sign_out(kept.get(), std::move(caller), request);
                       }});
  endpoints.push_back(
      {.method = "POST",
       .pattern = "/ui/proof",
       .permit = Permit::admin,
       .body = Body::json,
       .answer = [kept](Caller caller,
                        Request* request) { return prove(kept.get(), std::move(caller), request); },
       .body_bytes_max = kSmallBodyBytesMax});
  endpoints.push_back(
      {.method = "POST",
       .pattern = "/admin/sign-in-codes",
       .permit = Permit::admin,
       .body = Body::json,
       .answer = [kept](Caller, Request* request) { return make_code(kept.get(), request); },
       .body_bytes_max = kSmallBodyBytesMax,
       .needs_proof = true});
  endpoints.push_back({.method = "GET",
                       .pattern = "/admin/browsers",
                       .permit = Permit::admin,
                       .body = Body::none,
                       .answer = [kept](Caller caller, Request*) {
                         return list_browsers(kept.get(), std::move(caller));
                       }});
  endpoints.push_back({.method = "DELETE",
                       .pattern = "/admin/browsers/{id}",
                       .permit = Permit::admin,
                       .body = Body::none,
                       .answer = [kept](Caller caller, Request* request) {
                         return end_browser(kept.get(), std::move(caller), request);
                       }});
}

}  // namespace clawdforge
