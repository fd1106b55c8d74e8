#include "quota/quota.h"

#include <chrono>
#include <utility>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kShareRetryAfter{2};

}  // namespace

Result<AppShare> Quota::admit_connection(const App& app) {
  auto share = connections_.take(app.name, options_.connections_max_per_app);
  if (share) return std::move(*share);
  return fail_for_now(Errc::over_quota, "too_many_app_connections",
                      "This app has as many connections open as it may have; close some first.",
                      kShareRetryAfter);
}

Result<AppShare> Quota::admit_event_stream(const App& app) {
  auto share = event_streams_.take(app.name, options_.event_streams_max_per_app);
  if (share) return std::move(*share);
  return fail_for_now(Errc::over_quota, "too_many_streams",
                      "This app has as many streams open as it may have; close some first.",
                      kShareRetryAfter);
}

}  // namespace clawdforge
