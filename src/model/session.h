// A session is a conversation of many turns, a turn one prompt in it, an event one
// numbered thing that was said. What the ledger keeps of them. Plain records, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/strong_id.h"
#include "model/agent.h"
#include "model/ask_key.h"
#include "model/run.h"
#include "model/workspace.h"

namespace clawdforge {

struct Session {
  SessionId id;
  AppName app;
  std::string agent;
  std::string meta = "{}";  // JSON text of an object, as the app gave it
  TimePoint created_at;
  std::optional<TimePoint> last_turn_at;  // of a turn's start or end
  std::optional<TimePoint> closed_at;     // none: open
  std::string close_reason;        // of a CloseReason, or another program's; empty while open
  std::int64_t turn_count = 0;     // the highest turn index given
  std::int64_t last_event_id = 0;  // the highest event number given
  Usage usage;                     // of all turns
  std::optional<double> cost_usd;  // likewise

  // What is applied whenever the agent is started again. Empty: none.
  std::string agent_session_id;
  std::string model;
  std::string system;
  std::string effort;
  std::string mcp_servers;  // JSON text of an array
  PermissionMode permission_mode = PermissionMode::approve_reads;

  SessionWorkspace workspace{};  // what its agent works on

  // Where its app is told of questions; empty: nowhere. Written when the session is made; from then
  // on the ledger alone knows it.
  std::string webhook;
};

// Why the gateway closed a session.
enum class CloseReason { closed, idle, token_revoked };
std::string_view name_of(CloseReason reason);

// A session's row, with what only memory knows of it.
struct SessionView {
  Session session;
  bool is_live = false;  // an agent's process runs for it
  bool is_busy = false;  // a turn runs or waits
};

// How many sessions may be open.
struct SessionLimits {
  std::int64_t open_max = 0;
  std::optional<std::int64_t> open_max_per_app = std::nullopt;
  // Where no such limit is set: what one app leaves to the others. Over it the pool is full for
  // this app.
  std::optional<std::int64_t> open_share_max = std::nullopt;
};

// The closing ones are done and failed: each turn has exactly one of them.
enum class EventKind { update, permission, permission_resolved, done, failed };
std::string_view name_of(EventKind kind);
bool is_closing(EventKind kind);

struct Event {
  std::int64_t id = 0;          // grows by one within the session
  std::int64_t turn_index = 0;  // 0: outside of any turn
  EventKind kind = EventKind::update;
  std::string json;  // one line
};

// The journal keeps, and callers get, one line per event:
// {"id":7,"turn_index":1,"event":"update","data":{...}}
void append_event_line(std::string& out, const Event& event);

// The same line read again; views into it. None: it is not such a line.
struct EventView {
  std::int64_t id = 0;
  std::int64_t turn_index = 0;
  EventKind kind = EventKind::update;
  std::string_view json;
};
std::optional<EventView> event_in(std::string_view line);

// A block of consecutive events of one turn: one row of the journal.
struct JournalBlock {
  std::int64_t first_event_id = 0;
  std::int64_t last_event_id = 0;
  std::int64_t turn_index = 0;
  TimePoint at;
  std::string lines;  // each with its newline
};

struct TurnStart {
  std::int64_t index = 0;
  TimePoint at;
  std::optional<AskKey> key{};  // is begun with it
};

enum class TurnState { accepted, done, failed, cancelled, interrupted };
std::string_view name_of(TurnState state);
std::optional<TurnState> turn_state_from(std::string_view name);

// How it ended; not with `accepted`.
struct TurnSettled {
  std::int64_t index = 0;
  TurnState state = TurnState::failed;
  TimePoint at;
  std::optional<std::string> stop_reason;
  std::optional<std::string> code;  // of a failure
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::optional<std::string> error{};  // of a failure: the sentence that the caller was told
  // For how long the agent worked. None: it was not asked, so this is not an ask.
  std::optional<std::int64_t> agent_ms{};
  std::string reservation{};  // of the ask; given back with this. Empty: none
  std::optional<KeyWrite> key{};
  std::string agent{};  // for whom the ask counts, with the session's app
  std::string model{};
};

// One line of the audit: create, turn, close, sweep_close, hard_delete, cancel,
// permission or interrupted; for tokens see model/token_event.h.
struct AuditEvent {
  std::string event;
  TimePoint at;
  std::string meta = "{}";  // JSON text of an object
};

// What the ledger is told when the agent of a new session has started for the first time.
struct SessionCreated {
  AuditEvent event;
  std::optional<KeyWrite> key{};
};

}  // namespace clawdforge
