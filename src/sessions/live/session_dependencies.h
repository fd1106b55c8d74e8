// What the sessions of a gateway work with, and what their settings are: made once, shared
// by all of them. Each thing in it outlives them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_starter.h"
#include "base/async/task_group.h"
#include "base/ids.h"
#include "base/limits/byte_budget.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "ledger/sessions/journal_rows.h"
#include "ledger/sessions/session_rows.h"
#include "quota/byte_tally.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "sessions/live/seat_state.h"
#include "storage/work/acpx_records.h"
#include "storage/work/session_dirs.h"
#include "uploads/uploads.h"
#include "workspaces/workspaces.h"

namespace clawdforge {

class EarlierHome;

struct SessionDependencies {
  IoExecutor executor;
  SessionRows& rows;
  JournalRows& journal_rows;
  Quota& quota;
  const Policies& policies;
  const AgentCatalog& catalog;
  AgentStarter& starter;
  Uploads& uploads;
  SessionDirs& dirs;
  AcpxRecords& acpx_records;
  const Clock& clock;
  IdSource& ids;
  Log& log;
  Metrics& metrics;
  ByteBudget* memory = nullptr;  // counts what waits for the ledger; null: without a limit
  std::function<void(const AppName&)> on_news = {};  // something is to be told to a webhook
  Workspaces* workspaces = nullptr;                  // null: there are none
  // What the agent of the session with this directory takes of the machine's memory, in bytes.
  std::function<std::uint64_t(const std::string& own_dir)> memory_of = {};
  std::function<void()> relieve_memory = {};  // a start waits because there is none left
  EarlierHome* earlier_home = nullptr;        // null: there is none
};

struct SessionOptions {
  PermissionMode permission_mode = PermissionMode::approve_reads;
  std::chrono::milliseconds cancel_grace{};
  std::chrono::seconds start_max{};       // to wait for a slot when a session is made
  std::chrono::seconds first_sign_max{};  // from a prompt to the agent's first word
  std::chrono::seconds permission_timeout{};
  std::chrono::seconds sleep_after{};  // of idle sessions; 0: never
  std::size_t reader_bytes_max = 0;    // how far a reader may fall behind
  std::int64_t journal_bytes_max = std::numeric_limits<std::int64_t>::max();  // of one session
  std::int64_t journal_bytes_max_per_app = std::numeric_limits<std::int64_t>::max();
  bool keeps_prompts = true;        // in the first event of each turn
  std::chrono::seconds hard_ttl{};  // from a session's close to its deletion
};

// What each session and each turn count for beside their events: rows of the ledger.
inline constexpr std::int64_t kSessionOverheadBytes = 1'024;
inline constexpr std::int64_t kTurnOverheadBytes = 256;

class LiveSession;

// What all live sessions share. Outlives them.
struct LiveSessionDependencies {
  const SessionDependencies& services;
  const SessionOptions& options;
  TaskGroup& tasks;
  Counter& lines_skipped;                            // of agents, because they were not a message
  std::function<void()> make_space;                  // a start waits for a slot
  std::function<void(const LiveSession&)> on_quiet;  // nothing is under way any more
  ByteTally& journal_space;                          // what apps keep in the ledger
  std::function<void(SeatTransition)> on_seat_change = {};  // for tests; may be empty
};

}  // namespace clawdforge
