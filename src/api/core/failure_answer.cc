#include "api/core/failure_answer.h"

#include "api/core/endpoint.h"
#include "api/core/problem.h"

namespace clawdforge {

Response failure_response(const Failure& why, std::string body) {
  Response response = json_response(std::move(body));
  response.status = status_of(why.kind);
  response.detail = why.code;
  response.code = why.code;
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (why.retry_after.count() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(why.retry_after.count()));
  }
  add_limit_headers(response, why.rate_limit_policy, why.rate_limit);
  return response;
}

void add_limit_headers(Response& response, const std::string& policy, const std::string& left) {
  if (policy.empty()) return;
  response.headers.emplace_back("RateLimit-Policy", policy);
  response.headers.emplace_back("RateLimit", left);
}

}  // namespace clawdforge
