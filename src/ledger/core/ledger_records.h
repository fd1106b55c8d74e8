// What goes into the ledger and comes out of it, beside the nouns of the model. Plain
// records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/app.h"
#include "model/run.h"
#include "model/session.h"

namespace clawdforge {

struct AppUse {
  AppName name;
  TimePoint last_used_at;
};

// An app's row that another program has written and that cannot be understood.
struct UnreadableApp {
  std::string name;
  std::string reason;
};

// The unreadable ones are left out of `apps`, so they have no access: a range that was
// mistyped must not open the door to every address. They are told to the operator.
struct AppList {
  std::vector<App> apps;  // by name
  std::vector<UnreadableApp> unreadable;
};

// Which rows of an audit to show, newest first. Times are inclusive.
struct AuditFilter {
  std::optional<AppName> app;
  std::optional<TimePoint> since;
  std::optional<TimePoint> until;
  std::int64_t limit = 100;
  std::optional<std::string> cursor;  // a page's next_cursor, to go on after it
  // Of the audit's events alone.
  std::optional<std::string> event{};
  std::optional<SessionId> session_id{};
};

struct RunPage {
  std::vector<RunRecord> runs;
  std::optional<std::string> next_cursor;  // none: that was all
};

struct SessionFilter {
  AuditFilter audit;  // times are those of creation
  bool includes_closed = false;
};

struct SessionPage {
  std::vector<Session> sessions;  // newest first; without system prompt and MCP servers
  std::optional<std::string> next_cursor;
};

struct TurnPage {
  std::vector<TurnRecord> turns;           // the first ones first
  std::optional<std::int64_t> next_after;  // none: that was all
};

struct AuditRecord {
  SessionId session_id;
  AppName app;
  AuditEvent event;
};

struct AuditPage {
  std::vector<AuditRecord> events;  // newest first
  std::optional<std::string> next_cursor;
};

// An event for the session's webhook; nothing becomes of it if the session has none.
struct SessionNews {
  DeliveryId id;
  std::string type;
  std::shared_ptr<const std::string> body;
  TimePoint at;
};

// Everything that happened in one session since the last write, committed together.
struct SessionWrite {
  SessionId session_id;
  AppName app;
  std::vector<TurnStart> starts;
  std::vector<JournalBlock> blocks;
  std::vector<TurnSettled> ends;
  std::vector<AuditEvent> audit;
  std::vector<SessionNews> news{};
  // The session's oldest blocks go until it has no more than this. None: not looked at.
  std::optional<std::int64_t> journal_bytes_max{};
};

// A turn that an earlier life of the gateway has begun and not ended.
struct UnfinishedTurn {
  SessionId session_id;
  AppName app;
  std::string agent;  // its session's, as the model
  std::string model;
  std::int64_t index = 0;
  std::int64_t last_event_id = 0;  // of its session
  TimePoint started_at;
};

// What an error means that came from a write: false: nothing of it was kept.
inline bool may_be_kept(const Failure& failure) { return failure.cause == Cause::maybe_kept; }

}  // namespace clawdforge
