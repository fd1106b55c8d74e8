#include "api/core/api.h"

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "base/refusals.h"
#include "http/message/multipart.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kDrainRetryAfter{5};
constexpr std::size_t kIgnoredBodyBytesMax = 64 * 1024;

bool takes(Permit permit, CallerKind kind) {
  switch (permit) {
    case Permit::anybody:
      return true;
    case Permit::app:
      return kind == CallerKind::app;
    case Permit::admin:
      return kind == CallerKind::admin;
    case Permit::app_or_admin:
      return kind == CallerKind::app || kind == CallerKind::admin;
  }
  return false;
}

// Of the body, as the head announces it.
Result<void> check_type(const Endpoint& endpoint, const Request& request) {
  if (endpoint.body == Body::json && brings_another_type(request)) {
    return fail(Errc::unsupported_type, "unsupported_content_type",
                "Send the body as application/json.");
  }
  if (endpoint.body == Body::multipart) {
    const auto boundary = multipart_boundary(request.header("Content-Type").value_or(""));
    if (!boundary) return std::unexpected(boundary.error());
  }
  return {};
}

Task<Response> answer_with_headers(const Answer* answer, Caller caller, Request* request) {
  Response response = co_await (*answer)(std::move(caller), request);
  for (auto& header : request->answer_headers) response.headers.push_back(std::move(header));
  co_return response;
}

// What the owner does as an app is in the audit of that app before it is done.
Task<Response> answer_owner(OwnerNotes* notes, const Endpoint* endpoint, Caller caller,
                            Request* request) {
  const bool has_session = endpoint->pattern.starts_with("/sessions/{");
  const auto noted = co_await notes->note(
      {.app = caller.app->name,
       .session_id = SessionId(has_session ? request->params.front() : std::string()),
       .method = endpoint->method,
       .path = endpoint->pattern,
       .by = caller.admin});
  if (!noted) co_return problem(noted.error(), request->id);
  co_return co_await answer_with_headers(&endpoint->answer, std::move(caller), request);
}

}  // namespace

Response json_response(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

Api::Api(Endpoints endpoints, Auth auth, ApiLimits limits, const bool& is_draining,
         RefusalRenderers refusals)
    : endpoints_(std::move(endpoints)),
      auth_(std::move(auth)),
      limits_(limits),
      is_draining_(is_draining),
      refusals_(std::move(refusals)) {
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    router_.add(endpoints_[i].method, endpoints_[i].pattern, i);
  }
}

Admission Api::refuse(const Failure& failure, const Request& request, const Route* route) const {
  Admission admission;
  admission.refusal = refused(refusal_of(failure, request.id), refusals_.find(request.path));
  admission.refusal->detail = failure.detail;
  admission.route = route;
  return admission;
}

// A connection that counts for no app must not stay.
Admission Api::refuse_connection(const Failure& failure, const Request& request,
                                 const Route* route) const {
  Admission admission = refuse(failure, request, route);
  if (admission.refusal) admission.refusal->close = true;
  return admission;
}

Admission Api::refuse_unrouted(const Router::Match& match, const Request& request) const {
  Refusal refusal{404, "path_not_found", "There is nothing at this path."};
  if (!match.allow.empty()) {
    refusal = {405, "method_not_allowed", "This path does not take this method; see Allow."};
  }
  refusal.request_id = request.id;
  Admission admission;
  if (!match.allow.empty() && limits_.cross_origin.is_preflight(request)) {
    admission.refusal = CrossOrigin::preflight(match.allow);
    return admission;
  }
  admission.refusal = refused(refusal, refusals_.find(request.path));
  if (!match.allow.empty()) admission.refusal->headers.emplace_back("Allow", match.allow);
  return admission;
}

Result<Caller> Api::check_caller(const Endpoint& endpoint, const Request& request,
                                 const IpAddress& origin) {
  if (endpoint.permit == Permit::anybody) {
    if (auto checked = auth_.check_host(request); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
    if (endpoint.is_for_own_page) {
      if (auto checked = auth_.check_page(request); !checked) {
        return std::unexpected(std::move(checked.error()));
      }
    }
    return Caller{};
  }
  auto caller = auth_.identify(request, origin);
  if (const auto name = request.header("X-Clawdforge-App"); caller && name) {
    if (caller->kind != CallerKind::admin) {
      return fail(Errc::forbidden, "wrong_token_kind",
                  "X-Clawdforge-App goes with the admin token.");
    }
    if (endpoint.permit != Permit::admin) {
      caller = auth_.act_as(std::move(*caller), *name, endpoint.method == "GET");
    }
  }
  if (caller && !takes(endpoint.permit, caller->kind)) {
    return fail(Errc::forbidden, "wrong_token_kind",
                caller->kind == CallerKind::app
                    ? "This path takes the admin token."
                    : "This path takes an app's token, or the admin's with X-Clawdforge-App.");
  }
  if (caller && endpoint.needs_proof) {
    if (auto checked = auth_.check_proof(*caller); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
  }
  return caller;
}

Result<void> Api::count_app(const App& app, Admission& admission) {
  if (auto taken = limits_.rates.take(app, admission.meter); !taken) return taken;
  auto share = limits_.quota.admit_connection(app);
  if (!share) return std::unexpected(std::move(share.error()));
  admission.connection_hold = std::make_shared<const AppShare>(std::move(*share));
  admission.memory = limits_.memory.open(app.name.str());
  return {};
}

Admission Api::admit(Request& request) {
  const auto origin = auth_.check_address(request);
  // The connection ends, and the next one counts for its address.
  if (!origin) return refuse_connection(origin.error(), request, nullptr);
  Admission admission;
  // What other callers on this machine do must not keep its owner out.
  const auto taken =
      request.is_from_local_socket ? Result<void>() : limits_.rates.take(*origin, admission.meter);
  if (!taken) return refuse_connection(taken.error(), request, nullptr);
  if (*origin != request.peer) request.origin = *origin;
  auto match = router_.find(request.method, request.path);
  if (match.route == nullptr) return refuse_unrouted(match, request);
  const Endpoint& endpoint = endpoints_[match.route->index];
  auto caller = check_caller(endpoint, request, *origin);
  if (!caller) return refuse(caller.error(), request, match.route);
  if (caller->kind == CallerKind::admin) request.who = "(admin)";
  if (caller->kind == CallerKind::app) request.who = caller->app->name.str();
  if (caller->is_owner) request.who += " for (admin)";
  if (caller->browser) request.who += " by " + caller->browser->name;
  if (is_draining_ && !endpoint.answers_while_draining) {
    const auto refused = fail_for_now(Errc::unavailable, "draining",
                                      "The gateway is shutting down.", kDrainRetryAfter);
    return refuse(refused.error(), request, match.route);
  }
  if (const auto checked = check_type(endpoint, request); !checked) {
    return refuse(checked.error(), request, match.route);
  }
  admission.route = match.route;
  // What the owner does as an app uses none of the app's rates and connections.
  if (caller->kind == CallerKind::app && !caller->is_owner) {
    const auto counted = count_app(*caller->app, admission);
    if (!counted) return refuse_connection(counted.error(), request, match.route);
  } else {
    const bool is_admin = caller->kind == CallerKind::admin || caller->is_owner;
    admission.memory = limits_.memory.open(is_admin ? "(admin)" : "");
  }
  request.params = std::move(match.params);
  admission.body_bytes_max = kIgnoredBodyBytesMax;
  if (endpoint.body == Body::json) {
    admission.body_bytes_max = endpoint.body_bytes_max > 0
                                   ? std::min(endpoint.body_bytes_max, limits_.body_bytes_max)
                                   : limits_.body_bytes_max;
  }
  const bool is_pulled = endpoint.body == Body::multipart || endpoint.body == Body::bytes;
  if (is_pulled) admission.body_bytes_max = endpoint.body_bytes_max;
  admission.pulls_body = is_pulled;
  admission.watches_caller = endpoint.watches_caller;
  if (caller->is_owner && limits_.owner_notes != nullptr) {
    admission.handler = [notes = limits_.owner_notes, to = &endpoint,
                         caller = std::move(*caller)](Request* admitted) mutable {
      return answer_owner(notes, to, std::move(caller), admitted);
    };
    return admission;
  }
  admission.handler = [answer = &endpoint.answer, has_fields = endpoint.body == Body::json,
                       caller = std::move(*caller)](Request* admitted) mutable {
    if (!has_fields) return (*answer)(std::move(caller), admitted);
    return answer_with_headers(answer, std::move(caller), admitted);
  };
  return admission;
}

}  // namespace clawdforge
