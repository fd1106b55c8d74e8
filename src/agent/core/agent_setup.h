// What an agent is told when its process has been started, whatever is spoken with it: who it
// is, what must not be shown, where to count. A plain record; io thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async/compute_worker.h"
#include "base/clock.h"
#include "base/limits/byte_budget.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "model/agent.h"
#include "model/run.h"

namespace clawdforge {

class Child;
struct TrackedTree;

// Models and efforts of an agent that GET /agents lists.
inline constexpr std::size_t kToldChoicesMax = 256;

// What all agents hold together; each may be null.
struct AgentGauges {
  Gauge* outbox_bytes = nullptr;  // sent, and not read by the agent
  Gauge* early_bytes = nullptr;   // said while the conversation was being opened
  Gauge* line_bytes = nullptr;    // of messages that have begun and not ended
  Gauge* output_bytes = nullptr;  // printed by the agents of runs

  static AgentGauges in(Metrics& metrics);
};

// What an agent tells of itself when it is started.
struct AgentLore {
  std::string version;
  std::vector<std::string> models;
  std::vector<std::string> efforts;
};

struct AgentSetup {
  AgentSpec spec;
  std::chrono::milliseconds start_max{60'000};  // for each step of SessionAgent::open()
  const Clock* clock = nullptr;                 // to read a limit's end by; may be null
  AgentLore* lore = nullptr;                    // where to note what the agent tells; may be null
  std::vector<std::string> secrets;             // masked in what is shown of its words
  std::string boot_id;
  AgentGauges gauges;
  AppName app;                                                // whose work it is
  std::string working_dir;                                    // where it was started
  std::string conversation_id;                                // as in StartOrder
  bool loads_conversation = false;                            // likewise
  bool is_spare = false;                                      // likewise
  PermissionMode permission_mode = PermissionMode::deny_all;  // likewise
  Log* log = nullptr;                           // where an early end is reported; may be null
  ComputeWorker* compute = nullptr;             // reads large messages; null: read where they come
  ByteBudget* memory = nullptr;                 // what counts large messages; null: without a limit
  std::shared_ptr<TrackedTree> tree = nullptr;  // counted while it lives; null: it is not counted

  // A spare is this app's from now on.
  void adopt(AppName new_app);

  // For what the agent says, while it is not whole.
  ByteHold open_memory() const { return memory == nullptr ? ByteHold() : memory->open(app.str()); }

  // In Unix seconds; none: there is no clock.
  std::optional<std::int64_t> now() const;
  // Notes it, and gives it as it may be shown.
  std::string note_version(std::string_view told) const;
  // Which models and efforts it knows; empty lists change nothing. At most kToldChoicesMax of each.
  void note_choices(std::vector<std::string> models, std::vector<std::string> efforts) const;

  ProcessMark mark_of(const Child& child) const;
  // The tail of standard error as it may be shown: masked. The first word of a full tail may be
  // the end of a secret whose beginning is gone; it is left out.
  std::string shown_tail(std::string_view tail) const;
  // Logs that the process has ended before its work was done, with the last of what shown_tail()
  // gave: the owner of the gateway may have nothing else to find the reason by.
  void report_end(const Failure& why, std::string_view shown) const;
};

}  // namespace clawdforge
