#include "api/core/problem.h"

#include <string>

#include "json/json_members.h"

namespace clawdforge {

int status_of(Errc kind) {
  switch (kind) {
    case Errc::malformed:
      return 400;
    case Errc::unauthorized:
      return 401;
    case Errc::forbidden:
      return 403;
    case Errc::not_found:
      return 404;
    case Errc::conflict:
      return 409;
    case Errc::gone:
      return 410;
    case Errc::misdirected:
      return 421;
    case Errc::too_large:
      return 413;
    case Errc::unsupported_type:
      return 415;
    case Errc::invalid:
      return 422;
    case Errc::over_quota:
      return 429;
    case Errc::internal:
      return 500;
    case Errc::agent_failed:
      return 502;
    case Errc::unavailable:
      return 503;
    case Errc::timed_out:
      return 504;
  }
  return 500;
}

Refusal refusal_of(const Failure& failure, std::string_view request_id) {
  return {.status = status_of(failure.kind),
          .code = failure.code,
          .message = failure.message,
          .request_id = request_id,
          .retry_after = failure.retry_after,
          .fields = failure.fields,
          .limit = failure.limit,
          .rate_limit_policy = failure.rate_limit_policy,
          .rate_limit = failure.rate_limit};
}

void render_native_refusal(const Refusal& refusal, Response& response) {
  std::string& body = response.body;
  body = R"({"ok":false)";
  append_member(body, "code", refusal.code);
  append_member(body, "detail", refusal.message);
  append_member(body, "request_id", refusal.request_id);
  if (!refusal.fields.empty()) {
    append_name(body, "errors");
    body += '[';
    for (const FieldError& field : refusal.fields) {
      body += body.back() == '[' ? "{" : ",{";
      append_member(body, "field", field.field);
      append_member(body, "message", field.message);
      body += '}';
    }
    body += ']';
  }
  if (!refusal.limit.empty()) {
    append_name(body, "limit");
    body += refusal.limit;
  }
  body += '}';
}

Response problem(const Failure& failure, std::string_view request_id) {
  Response response = refused(refusal_of(failure, request_id), render_native_refusal);
  response.detail = failure.detail;
  return response;
}

}  // namespace clawdforge
