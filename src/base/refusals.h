// Refusals that end by themselves: the caller is told when to try again. Those that several rooms
// have to give are here in words, so that each is the same wherever it comes from; `detail` says
// for the log what was noticed in that place.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace clawdforge {

// Also for http's own answers, which are made before there is an Failure.
inline constexpr std::string_view kOutOfMemoryMessage =
    "The gateway has no memory left for this; try again shortly.";

inline std::unexpected<Failure> fail_for_now(Errc kind, std::string_view code, std::string message,
                                             std::chrono::seconds retry_after,
                                             std::string detail = {}) {
  return std::unexpected(Failure{.kind = kind,
                                 .code = code,
                                 .message = std::move(message),
                                 .detail = std::move(detail),
                                 .retry_after = retry_after});
}

// The member `limit` of a refusal: how much an app has at once of what has no window.
inline std::string standing_limit(std::string_view unit, std::int64_t limit, std::int64_t used) {
  return fmt::format(
      R"({{"scope":"app","window":null,"unit":"{}","limit":{},"used":{},"reserved":0,"resets_at":null}})",
      unit, limit, used);
}

// For a request, a run or a turn.
inline std::unexpected<Failure> out_of_memory() {
  return fail_for_now(Errc::unavailable, "out_of_memory", std::string(kOutOfMemoryMessage),
                      std::chrono::seconds(2));
}

inline std::unexpected<Failure> disk_stalled() {
  return fail_for_now(Errc::unavailable, "disk_stalled",
                      "The gateway's disk does not answer; try again later.",
                      std::chrono::seconds(5));
}

inline std::unexpected<Failure> ledger_unavailable(std::string detail) {
  auto failed = fail_for_now(Errc::unavailable, "ledger_unavailable",
                             "The ledger cannot be written or read right now; try again shortly.",
                             std::chrono::seconds(1), std::move(detail));
  failed.error().cause = Cause::ledger_away;
  return failed;
}

// The ledger does not answer, and it is not known yet whether the write will be kept.
inline std::unexpected<Failure> ledger_stalled(std::string detail) {
  auto failed =
      fail_for_now(Errc::unavailable, "ledger_stalled",
                   "The ledger does not answer; whether this was kept will only show when it does.",
                   std::chrono::seconds(5), std::move(detail));
  failed.error().cause = Cause::maybe_kept;
  return failed;
}

}  // namespace clawdforge
