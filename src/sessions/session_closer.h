// SessionCloser ends sessions for good: because an app closes one, because it was idle for too
// long, because another program has closed its row, or because it was never made. The row
// decides; then what lives here ends, and what the agent has left outside of the session's
// directory is removed. Member of Sessions; io thread only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "base/clock.h"
#include "model/session.h"

namespace clawdforge {

class Feeds;
class LiveSessions;
struct SessionDependencies;

class SessionCloser {
 public:
  // All outlives it. Its tasks are those of `live`.
  SessionCloser(const SessionDependencies& deps, LiveSessions& live, Feeds& feeds);
  SessionCloser(const SessionCloser&) = delete;
  SessionCloser& operator=(const SessionCloser&) = delete;

  // Closes the row and ends the session. True: it was open. Returns when the agent's tree is
  // gone.
  Async<bool> close(Session session);
  // Closes a session that has been idle since `idle_since`, by its row and in memory. True: it
  // did.
  Async<bool> sweep(SessionId id, TimePoint idle_since);
  // Removes what a closed session has left outside of its directory, if its end was not ours,
  // or was cut short.
  Async<void> clear(SessionId id);
  // Ends what lives here for sessions whose rows are closed or gone.
  Async<void> follow_ledger();

  // Of a session whose row is gone. What it has in a repository is swept.
  void forget_snapshot(const SessionId& id);

  // Ends a session whose agent did not start, removes its row, and leaves `why` in the audit.
  // `has_dir`: there is a directory to be removed.
  Task<void> undo(Session session, bool has_dir, AuditEvent why);
  // Tries until the row of a session that was not made is removed.
  void drop_later(SessionId id, std::optional<AuditEvent> why = std::nullopt);
  std::size_t undropped() const { return undropped_; }

 private:
  Async<bool> close_row(SessionId id, CloseReason reason, AuditEvent event,
                        std::optional<TimePoint> idle_since, Lane lane);
  Task<void> end_for_good(SessionId id, std::string agent_session_id, Lane lane);
  Task<void> drop_again(SessionId id, std::optional<AuditEvent> why);

  const SessionDependencies& deps_;
  LiveSessions& live_;
  Feeds& feeds_;
  std::size_t undropped_ = 0;  // sessions that were not made, and whose row is still there
};

}  // namespace clawdforge
