// CrossOrigin says which web pages of other origins may use our answers (CORS): those that the
// owner has listed, and no others. Such a page sends its token itself; cookies and other
// credentials of the browser are never asked for. A plain value; const after it was made.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "http/message/request.h"
#include "http/message/response.h"

namespace clawdforge {

class CrossOrigin {
 public:
  CrossOrigin() = default;
  // Each as browsers send it: https://app.example or http://localhost:5173.
  explicit CrossOrigin(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // A browser asks whether a page of a listed origin may send a request.
  bool is_preflight(const Request& request) const {
    return request.method == "OPTIONS" && request.header("Access-Control-Request-Method") &&
           allows(request);
  }
  // Its answer. `methods` are those of the path, as in Allow.
  static Response preflight(const std::string& methods);

  // Lets a page of a listed origin read the answer. Nothing is added for others.
  void add_headers(const Request& request, Response& response) const;

 private:
  // What callers may send beside what browsers always allow.
  static constexpr const char* kRequestHeaders =
      "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, X-Clawdforge-App, "
      "X-Request-Id";
  // What a page may read of an answer, likewise.
  static constexpr const char* kExposedHeaders =
      "Allow, Content-Disposition, Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, "
      "Retry-After, WWW-Authenticate, X-Clawdforge-Cost-Usd, X-Clawdforge-Ignored, "
      "X-Clawdforge-Input-Tokens, X-Clawdforge-Output-Tokens, X-Clawdforge-Run-Id, X-Request-Id";
  static constexpr const char* kPreflightAge = "600";  // seconds that a browser need not ask again

  bool allows(const Request& request) const {
    if (origins_.empty()) return false;
    const auto origin = request.header("Origin");
    return origin && std::ranges::find(origins_, *origin) != origins_.end();
  }

  std::vector<std::string> origins_;
};

inline Response CrossOrigin::preflight(const std::string& methods) {
  Response response;
  response.status = 204;
  response.headers = {{"Access-Control-Allow-Methods", methods},
                      {"Access-Control-Allow-Headers", kRequestHeaders},
                      {"Access-Control-Max-Age", kPreflightAge}};
  return response;
}

inline void CrossOrigin::add_headers(const Request& request, Response& response) const {
  if (!allows(request)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin",
                                std::string(request.header("Origin").value_or("")));
  response.headers.emplace_back("Access-Control-Expose-Headers", kExposedHeaders);
  response.headers.emplace_back("Vary", "Origin");
}

}  // namespace clawdforge
