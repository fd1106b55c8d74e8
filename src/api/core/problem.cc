#include "api/core/problem.h"

#include <string>

#include "base/json_text.h"

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

Response problem(const Failure& error, std::string_view request_id) {
  Response response;
  response.status = status_of(error.kind);
  response.body = error_body(error.code, error.message, request_id);
  response.detail = error.detail;
  if (!error.fields.empty()) {
    response.body.pop_back();  // the closing brace
    response.body += R"(,"errors":[)";
    for (const FieldError& field : error.fields) {
      response.body += R"({"field":)";
      append_json_string(response.body, field.field);
      response.body += R"(,"message":)";
      append_json_string(response.body, field.message);
      response.body += "},";
    }
    response.body.back() = ']';
    response.body += '}';
  }
  if (error.kind == Errc::unauthorized) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.retry_after.count() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after.count()));
  }
  return response;
}

}  // namespace clawdforge
