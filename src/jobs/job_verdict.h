// What becomes of a job after an answer to it. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/jobs/job.h"

namespace clawdforge {

// After the first attempt, the second, and so on.
inline constexpr std::array<std::chrono::seconds, kJobAttemptsMax - 1> kRetryPauses = {
    std::chrono::seconds(1), std::chrono::seconds(10), std::chrono::seconds(60),
    std::chrono::seconds(300)};
// A job that waits for a limit looks at least so often whether it has ended, because its owner may
// have raised it.
inline constexpr std::chrono::milliseconds kLimitLookMax{30'000};
// The first look after a limit that may end at any time, and the most.
inline constexpr std::chrono::milliseconds kPlaceLookMin{100};
inline constexpr std::chrono::milliseconds kPlaceLookMax{2'000};

// What the plain call would have answered.
struct JobAnswer {
  int status = 0;
  std::string body{};
  std::string code{};                   // of a refusal or failure; empty: it went well
  std::chrono::seconds retry_after{0};  // zero: none was named
};

struct Verdict {
  enum class Next {
    end,       // in `state`
    retry,     // after `pause`: an attempt was made
    wait,      // the app's jobs wait for `pause`: no attempt was made
    postpone,  // this job waits for `pause`, and others go on: no attempt was made
    leave,     // the gateway stops: the job stays queued
  };
  Next next = Next::end;
  JobState state = JobState::failed;
  std::chrono::milliseconds pause{0};
};

// `has_begun`: its agent was to be asked. `is_unwanted`: its app has cancelled it. `attempts`
// counts this one. `looks`: how often the job has waited for a place already.
Verdict verdict_on(const JobAnswer& answer, bool has_begun, bool is_unwanted, std::int64_t attempts,
                   std::int64_t attempts_max, int looks);

}  // namespace clawdforge
