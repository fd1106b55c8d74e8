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
  SystemMode system_mode = SystemMode::append;
  std::string effort;
  std::string mcp_servers;  // JSON text of an array
  PermissionMode permission_mode = PermissionMode::approve_reads;

  SessionWorkspace workspace{};  // what its agent works on
  SessionId forked_from{};       // whose conversation it began with; empty: it began a new one

  // Where its app is told of questions; empty: nowhere. Written when the session is made; from then
  // on the ledger alone knows it.
  std::string webhook;

  std::string title{};  // the first line of its first prompt that is kept; empty: none is
};

// Why the gateway closed a session.
enum class CloseReason { closed, idle, token_revoked };
std::string_view name_of(CloseReason reason);

// How much of what an agent can keep in mind is in use, in tokens.
struct ContextUse {
  std::int64_t used = 0;
  std::int64_t size = 0;
};

// A session's row, with what only memory knows of it.
struct SessionView {
  Session session;
  bool is_live = false;  // an agent's process runs for it
  bool is_busy = false;  // a turn runs or waits
  std::int64_t turns_waiting = 0;
  std::int64_t questions_open = 0;
  std::optional<TimePoint> turn_started_at{};   // of the turn that runs
  std::optional<ContextUse> context{};          // as its agent told last
  std::string agent_version{};                  // as its agent told; empty: not known
  std::optional<TimePoint> delete_at{};         // from when on the sweeper deletes a closed one
  std::optional<std::uint64_t> memory_bytes{};  // of its agent; none: it is not told
};

// How many sessions may be open.
struct SessionLimits {
  std::int64_t open_max = 0;
  std::optional<std::int64_t> open_max_per_app = std::nullopt;
  // Where no such limit is set: what one app leaves to the others. Over it the pool is full for
  // this app.
  std::optional<std::int64_t> open_share_max = std::nullopt;
};

// Each turn begins with one `turn`, and the closing ones are done and failed: each turn has exactly
// one of them.
enum class EventKind { update, permission, permission_resolved, done, failed, turn };
std::string_view name_of(EventKind kind);
bool is_closing(EventKind kind);

struct Event {
  std::int64_t id = 0;          // grows by one within the session
  std::int64_t turn_index = 0;  // 0: outside of any turn
  EventKind kind = EventKind::update;
  std::string json;  // one line
  TimePoint at{};
  std::optional<std::int64_t> offset_ms{};  // since its turn began; none: outside of any turn
};

// An event's line read again; views into it.
struct EventView {
  std::int64_t id = 0;
  std::int64_t turn_index = 0;
  EventKind kind = EventKind::update;
  std::string_view json;
  std::optional<std::int64_t> at{};  // unix seconds; none: the line is older than such times
  std::optional<std::int64_t> offset_ms{};
};

// The journal keeps, and callers get, one line per event:
// {"id":7,"turn_index":1,"at":1700000000,"offset_ms":12,"event":"update","data":{...}}
void append_event_line(std::string& out, const Event& event);
void append_event_line(std::string& out, const EventView& event);
// None: it is not such a line.
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
  std::optional<AskKey> key{};      // is begun with it
  std::int64_t first_event_id = 0;  // of its `turn` event
  std::string title{};              // for a session that has none yet; empty: none
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
  std::int64_t last_event_id = 0;  // of its closing event
  std::int64_t duration_ms = 0;
};

// A turn as its row tells it, with what its `turn` event has kept.
struct TurnRecord {
  std::int64_t index = 0;
  TurnState state = TurnState::accepted;
  std::optional<std::string> code;
  std::optional<std::string> error;
  std::optional<std::string> stop_reason;
  TimePoint started_at;
  std::optional<TimePoint> ended_at;
  std::optional<std::int64_t> duration_ms;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::optional<std::int64_t> first_event_id;
  std::optional<std::int64_t> last_event_id;
  std::string opening;  // JSON of its `turn` event; empty: it is not kept
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
