// A job is a run or a turn that the gateway has promised to do: it is kept in the ledger until it
// has been done, over restarts, and its answer for a while after that. Plain records, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/strong_id.h"

namespace clawdforge {

using JobId = StrongId<struct JobNoun>;

enum class JobKind { run, turn };

enum class JobState { queued, running, succeeded, failed, cancelled, interrupted };

std::string_view name_of(JobKind kind);
std::string_view name_of(JobState state);
std::optional<JobKind> job_kind_from(std::string_view name);
std::optional<JobState> job_state_from(std::string_view name);

inline bool has_ended(JobState state) {
  return state != JobState::queued && state != JobState::running;
}

inline constexpr std::int64_t kJobAttemptsMax = 5;

struct Job {
  JobId id;
  AppName app;
  JobKind kind = JobKind::run;
  JobState state = JobState::queued;
  SessionId session_id;    // of a turn
  std::string meta;        // JSON text of an object
  std::string webhook;     // empty: none
  std::string request_id;  // of the request that brought it
  TimePoint created_at;
  TimePoint ready_at;  // it does not start earlier
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  std::int64_t attempts = 0;  // that were begun
  std::int64_t attempts_max = 1;
  // Of a turn that has begun: its index, and the session's last event before it.
  std::optional<std::int64_t> turn_index;
  std::int64_t after_event = 0;
  std::optional<std::int64_t> status;  // that the plain call would have had
};

// How a job ended. Without an answer: it was never done.
struct JobEnd {
  JobId id{};
  AppName app{};
  JobState state = JobState::failed;
  TimePoint ended_at{};
  std::optional<std::int64_t> status{};
  std::string answer{};  // JSON text; empty where it is in a file
  std::int64_t answer_bytes = 0;
  bool is_in_file = false;
};

}  // namespace clawdforge
