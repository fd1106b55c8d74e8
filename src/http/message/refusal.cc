#include "http/message/refusal.h"

#include <algorithm>

namespace clawdforge {
namespace {

bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

}  // namespace

Response refused(const Refusal& refusal, RenderRefusal render) {
  Response response;
  response.status = refusal.status;
  response.code = refusal.code;
  if (refusal.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (refusal.retry_after.count() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after.count()));
  }
  if (!refusal.rate_limit_policy.empty()) {
    response.headers.emplace_back("RateLimit-Policy", refusal.rate_limit_policy);
    response.headers.emplace_back("RateLimit", refusal.rate_limit);
  }
  render(refusal, response);
  return response;
}

void RefusalRenderers::add(std::string prefix, RenderRefusal render) {
  by_prefix_.emplace_back(std::move(prefix), render);
  std::ranges::sort(by_prefix_, std::ranges::greater(),
                    [](const auto& entry) { return entry.first.size(); });
}

RenderRefusal RefusalRenderers::find(std::string_view path) const {
  const auto found = std::ranges::find_if(
      by_prefix_, [&](const auto& entry) { return is_below(path, entry.first); });
  return found == by_prefix_.end() ? otherwise_ : found->second;
}

void render_plain_refusal(const Refusal& refusal, Response& response) {
  response.content_type = "text/plain; charset=utf-8";
  response.body.append(refusal.code).append(": ").append(refusal.message).append("\n");
}

}  // namespace clawdforge
