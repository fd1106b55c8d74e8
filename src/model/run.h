// A run is one prompt and one answer. What the ledger keeps of it; the prompt itself is
// not kept. Plain records, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace clawdforge {

struct Usage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cache_read_tokens = 0;
  std::int64_t cache_write_tokens = 0;
  bool operator==(const Usage&) const = default;
};

// {"input_tokens":1,...}: the same wherever it is shown.
void append_json(std::string& out, const Usage& usage);

// A process of ours, told from a later one with the same pid.
struct ProcessMark {
  std::int64_t pid = 0;
  std::int64_t start_time = 0;  // in clock ticks since boot
  std::string boot_id;
};

struct Run {
  std::string id;
  std::string app;
  std::string agent;
  std::string model;
  std::int64_t prompt_bytes = 0;
  TimePoint started_at;
  std::string instance_id;
};

// How it ended. `state` is succeeded, failed, cancelled or interrupted.
struct RunEnd {
  std::string run_id;
  std::string state;
  std::string outcome;  // "ok", or the stable code of the failure
  TimePoint ended_at;
  std::int64_t duration_ms = 0;
  std::optional<std::int64_t> result_bytes;
  std::optional<std::string> stop_reason;
  std::optional<int> exit_code;  // as far as it was known when the run was settled
  std::optional<int> exit_signal;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
};

// A row as the audit shows it; `end` is absent while the run is under way.
struct RunRecord {
  Run run;
  std::optional<RunEnd> end;
};

}  // namespace clawdforge
