// The rows of sessions, from their first moment to their end. What every call promises, and
// which errors each may give: ledger/ledger.h. A call that an app has asked for names its lane.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "ledger/core/ledger_records.h"

namespace clawdforge {

class LedgerWorker;

class SessionRows {
 public:
  SessionRows(LedgerWorker& worker, InstanceId self) : worker_(worker), self_(std::move(self)) {}

  // Errc::not_found "session_not_found". Without `system` and `mcp_servers`, which may be
  // large and only its agent needs.
  Async<Session> find(SessionId id, Lane lane = {}) const;
  // The same with all of it.
  Async<Session> load(SessionId id, Lane lane = {}) const;
  // Io thread, without asking the ledger: a row that was read after the same mark as this one is
  // still as it was, but for what this gateway itself has changed. None: it has to be read.
  std::optional<std::uint64_t> foreign_mark() const;
  // Errc::invalid "validation_failed" for a cursor that no page has given.
  Async<SessionPage> page(SessionFilter filter, Lane lane = {}) const;
  Async<std::int64_t> count_open() const;
  // Those of `ids` that are open.
  Async<std::vector<SessionId>> open_among(std::vector<SessionId> ids) const;
  // Open sessions whose last turn, or creation, is at or before `last`, the oldest first.
  Async<std::vector<Session>> idle(TimePoint last, std::int64_t limit) const;
  // Ids of sessions closed at or before `last`, the oldest first.
  Async<std::vector<SessionId>> closed(TimePoint last, std::int64_t limit) const;
  Async<std::vector<SessionId>> all_ids() const;

  // An open session without an agent yet; to add the same one again changes nothing.
  // Errc::unavailable "pool_full",
  // Errc::over_quota "too_many_sessions".
  Async<void> add(Session session, SessionLimits limits);
  // Its agent runs: what to load it by later, and the process. `created` comes with the
  // first start and goes into the audit. The session is this gateway's from now on.
  // Errc::gone "session_closed" when the row is closed, gone, or another living gateway's.
  Async<void> note_agent(SessionId id, std::string agent_session_id, ProcessMark process,
                         std::optional<SessionCreated> created, Lane lane = {});
  // What it works on has been made.
  Async<void> note_workspace(SessionId id, SessionWorkspace workspace, Lane lane = {});
  // Its agent does not run any more. A session of another living gateway stays as it is.
  Async<void> forget_process(SessionId id, Lane lane = {});
  // Removes a session whose agent did not start. Nothing of it is left but `why` in the audit.
  Async<void> drop(SessionId id, Lane lane = {}, std::optional<AuditEvent> why = std::nullopt);
  // Closes it if it is open and, with `idle_since`, if nothing has happened in it after
  // that. Says whether it did. `event` goes into the audit if so.
  Async<bool> close(SessionId id, CloseReason reason, AuditEvent event,
                    std::optional<TimePoint> idle_since, Lane lane = {});
  // Deletes a closed session's journal, at most `blocks_max` rows of it, and with the last
  // of them its turns and its row; `event` goes into the audit then. Says whether all is gone.
  Async<bool> remove_closed(SessionId id, AuditEvent event, std::int64_t blocks_max);

  // What the sessions of each app keep, open and closed: their events and texts, with
  // `bytes_each` more for each of them and `bytes_each_turn` for each of their turns.
  Async<std::map<AppName, std::int64_t>> bytes_by_app(std::int64_t bytes_each,
                                                      std::int64_t bytes_each_turn) const;

  // At start, of lives that have ended: the processes of sessions, the oldest first and at
  // most `limit`.
  Async<std::vector<ProcessMark>> left_processes(std::int64_t limit) const;
  // At start, of lives that have ended: sessions whose creation was never answered are removed,
  // and the others are this gateway's and have no process any more. Gives how many were removed.
  Async<std::int64_t> adopt_left();

 private:
  Async<Session> read(SessionId id, bool is_whole, Lane lane) const;

  LedgerWorker& worker_;
  const InstanceId self_;
};

}  // namespace clawdforge
