#include "jobs/job_verdict.h"

#include <algorithm>

namespace clawdforge {
namespace {

using std::chrono::milliseconds;
using Next = Verdict::Next;

template <std::size_t N>
bool is_among(std::string_view code, const std::array<std::string_view, N>& codes) {
  return std::ranges::find(codes, code) != codes.end();
}

// What a place or the gateway's own means are short of: it may be over at any time.
constexpr std::array<std::string_view, 15> kShortages = {
    "login_renewing", "login_unreachable",  "memory_full",    "queue_full",    "queue_timeout",
    "too_many_runs",  "too_many_bytes",     "memory_budget",  "out_of_memory", "disk_busy",
    "disk_stalled",   "ledger_unavailable", "ledger_stalled", "compute_busy",  "disk_full"};
// These say nothing of the app's other jobs.
constexpr std::array<std::string_view, 2> kOfThisJob = {"account_limit", "turn_queue_full"};

milliseconds look_after(int looks) {
  return std::min(kPlaceLookMax, kPlaceLookMin * (1 << std::clamp(looks, 0, 5)));
}

milliseconds limit_pause(const JobAnswer& answer) {
  const milliseconds named = std::max(milliseconds(1'000), milliseconds(answer.retry_after));
  return answer.retry_after.count() > 0 ? std::min(named, kLimitLookMax) : kLimitLookMax;
}

bool is_cancelled_turn(const JobAnswer& answer) {
  return answer.body.contains(R"("stop_reason":"cancelled")");
}

}  // namespace

Verdict verdict_on(const JobAnswer& answer, bool has_begun, bool is_unwanted, std::int64_t attempts,
                   std::int64_t attempts_max, int looks) {
  const bool has_failed = answer.status >= 400;
  if (is_unwanted && (has_failed || is_cancelled_turn(answer))) {
    return {.next = Next::end, .state = JobState::cancelled};
  }
  if (!has_failed) return {.next = Next::end, .state = JobState::succeeded};
  if (answer.code == "token_revoked" || (has_begun && answer.code == "cancelled")) {
    return {.next = Next::end, .state = JobState::cancelled};
  }
  const bool is_stop = answer.code == "interrupted";
  if (!has_begun) {
    if (is_stop) return {.next = Next::leave};
    if (is_among(answer.code, kOfThisJob)) {
      return {.next = Next::postpone, .pause = limit_pause(answer)};
    }
    if (is_among(answer.code, kShortages)) return {.next = Next::wait, .pause = look_after(looks)};
    if (answer.status == 429) return {.next = Next::wait, .pause = limit_pause(answer)};
  }
  const bool may_help = answer.status == 502 || answer.status == 503 || answer.status == 504;
  if (may_help && attempts < attempts_max) {
    const auto index = static_cast<std::size_t>(std::max<std::int64_t>(attempts, 1) - 1);
    return {.next = Next::retry, .pause = kRetryPauses[std::min(index, kRetryPauses.size() - 1)]};
  }
  return {.next = Next::end, .state = is_stop ? JobState::interrupted : JobState::failed};
}

}  // namespace clawdforge
