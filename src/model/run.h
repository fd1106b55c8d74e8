// A run is one prompt and one answer. What the ledger keeps of it; the prompt itself only where the
// owner wants that. Plain records, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"
#include "model/ask_key.h"

namespace clawdforge {

// Whether a system prompt comes after the agent's own, or instead of it.
enum class SystemMode { append, replace };
inline constexpr std::string_view kSystemReplaced = "replace";

// Which of its tools the agent of a run has at all. What it may do with them is for the permission
// mode to say.
enum class ToolSet { none, read, all, named };
struct ToolChoice {
  ToolSet set = ToolSet::all;
  std::vector<std::string> names{};  // for ToolSet::named: as the agent calls them

  bool operator==(const ToolChoice&) const = default;
};

struct Usage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cache_read_tokens = 0;
  std::int64_t cache_write_tokens = 0;
  bool operator==(const Usage&) const = default;
};

// {"input_tokens":1,...}: the same wherever it is shown.
void append_json(std::string& out, const Usage& usage);

// Of what is told of tools that were denied.
inline constexpr std::size_t kDenialsMax = 50;
inline constexpr std::size_t kDenialToolBytesMax = 128;
inline constexpr std::size_t kDenialInputBytesMax = 512;

// A tool that the agent of a run wanted to use, and was not allowed to. Valid UTF-8.
struct Denial {
  std::string tool;
  std::string input;  // the beginning of its JSON text
  bool operator==(const Denial&) const = default;
};

// A process of ours, told from a later one with the same pid.
struct ProcessMark {
  std::int64_t pid = 0;
  std::int64_t start_time = 0;  // in clock ticks since boot
  std::string boot_id;
};

struct Run {
  RunId id;
  AppName app;
  std::string agent;
  std::string model;
  std::int64_t prompt_bytes = 0;
  TimePoint started_at;
  InstanceId instance_id;
  std::optional<AskKey> key{};          // is begun with it
  std::optional<std::string> prompt{};  // its beginning, if it is kept
};

// What is kept of a run's prompt, and what lists show of that.
inline constexpr std::size_t kKeptRunPromptBytesMax = 64 * 1024;
inline constexpr std::size_t kListedRunPromptCharactersMax = 1024;

// Of what is told to callers about a failed run or turn, and kept in the ledger.
inline constexpr std::size_t kSentenceCharactersMax = 500;

enum class RunState { running, succeeded, failed, cancelled, interrupted };
std::string_view name_of(RunState state);
std::optional<RunState> run_state_from(std::string_view name);

// How it ended; not with `running`.
struct RunEnd {
  RunId run_id;
  AppName app;
  RunState state = RunState::failed;
  std::string outcome;               // "ok", or the stable code of the failure
  std::optional<std::string> error;  // of a failure: the sentence that the caller was told
  TimePoint ended_at;
  std::int64_t duration_ms = 0;
  std::optional<std::int64_t> result_bytes;
  std::optional<std::string> stop_reason;
  std::optional<int> exit_code;  // as far as it was known when the run was settled
  std::optional<int> exit_signal;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  // For how long the agent worked. None: it was not asked, so this is not an ask.
  std::optional<std::int64_t> agent_ms;
  std::string reservation;  // of the ask; given back with this. Empty: none
  std::optional<KeyWrite> key{};
};

// A row as the audit shows it; `end` is absent while the run is under way.
struct RunRecord {
  Run run;
  std::optional<RunEnd> end;
};

}  // namespace clawdforge
