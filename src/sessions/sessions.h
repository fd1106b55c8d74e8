// Sessions does what /sessions asks: conversations of many turns with a live agent behind
// them. The ledger's rows decide what is open and whose it is; memory only knows what lives
// and what is under way. A turn belongs to its session, not to the connection that asked
// for it. Io thread only. Its owner calls stop() and waits for it before it dies.
//
// More sessions may be open than processes may live: then the one that has been idle for
// longest is put to sleep, and wakes with its conversation at its next turn.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/hang_up.h"
#include "base/task_group.h"
#include "quota/pool.h"
#include "sessions/event_reader.h"
#include "sessions/feed.h"
#include "sessions/live_session.h"
#include "sessions/session_dependencies.h"
#include "sessions/turn.h"

namespace clawdforge {

struct SessionRequest {
  std::string agent;
  std::string meta = "{}";  // JSON text of an object
  std::string model;        // this and all below: empty: the agent's default
  std::string system;
  std::string effort;
  std::string mcp_servers;  // JSON text of an array
  std::optional<PermissionMode> permission_mode;
};

struct SessionView {
  Session session;
  bool is_live = false;
  bool is_busy = false;
};

struct TurnStream {
  std::int64_t turn_index = 0;
  std::unique_ptr<EventReader> reader;  // also tells events of other turns
};

class Sessions {
 public:
  using Dependencies = SessionDependencies;
  using Options = SessionOptions;

  Sessions(Dependencies surroundings, Options options);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // Errc::invalid "unknown_agent"; Errc::unavailable "pool_full", "agent_not_found",
  // "agent_not_logged_in", "queue_timeout"; Errc::over_quota "too_many_sessions";
  // Errc::agent_failed; Errc::timed_out. An error leaves no session. `hang_up` undoes it.
  Async<Session> create(std::shared_ptr<const App> app, SessionRequest request, HangUp* hang_up);

  // An outcome once the turn has an index; it is settled in the ledger by then. An error
  // before that: Errc::not_found "session_not_found" or "file_not_found", Errc::gone
  // "session_closed", Errc::conflict "turn_queue_full", Errc::unavailable. `hang_up`
  // drops a turn that waits; one that runs goes on.
  Async<TurnOutcome> turn(std::shared_ptr<const App> app, std::string id, TurnRequest request,
                          HangUp* hang_up);

  // The same, to be watched: the turn is accepted, and its events come from the reader.
  Async<TurnStream> stream_turn(std::shared_ptr<const App> app, std::string id,
                                TurnRequest request);

  // Errc::not_found "session_not_found", also for somebody else's; so do all below.
  Async<SessionView> find(std::string app, std::string id);
  // A row of a list, with what memory knows of it.
  SessionView view_of(Session session) const;

  // Ends the turns, the agent and the session. True: it was open. Returns when the agent's
  // tree is gone.
  Async<bool> close(std::string app, std::string id);

  // Asks the agent to end the turn that runs; the others go on. False: none runs.
  // Errc::gone "session_closed".
  Async<bool> cancel(std::string app, std::string id);

  // What has been told behind event `after`. Errc::invalid "validation_failed" when that is
  // beyond the newest.
  Async<std::unique_ptr<EventReader>> read_events(std::string app, std::string id,
                                                  std::int64_t after);
  // Looks again whether those who read may still do so.
  void recheck_readers();
  // Those who read on for what may come are told that nothing does, from now on at once.
  void end_event_streams();

  Async<std::vector<OpenQuestion>> questions(std::string app, std::string id);
  // As Questions::answer().
  Async<void> answer(std::string app, std::string id, std::string question_id,
                     PermissionChoice choice);

  Async<WorkListing> files(std::string app, std::string id);
  Async<std::unique_ptr<WorkFileReader>> open_file(std::string app, std::string id,
                                                   std::string path);

  // For the sweeper. Closes a session that has been idle since `idle_since`, by its row and
  // in memory. True: it did.
  Async<bool> sweep(std::string id, TimePoint idle_since);
  // Removes what a closed session has left outside of its directory, if its end was not
  // ours, or was cut short.
  Async<void> clear(std::string id);
  // Ends what lives here for sessions whose rows are closed or gone.
  Async<void> follow_ledger();

  // Interrupts all turns and waits until no agent is left.
  Task<void> stop();

  // What waits in memory, over all sessions.
  struct Load {
    std::size_t turns_waiting = 0;
    std::size_t questions_open = 0;
    std::size_t answer_bytes = 0;   // gathered for answers
    std::size_t journal_bytes = 0;  // on their way to the ledger
    std::size_t readers = 0;
    std::size_t feed_bytes = 0;  // kept for them
    std::size_t undropped = 0;   // sessions that were not made, and whose row is still there
  };
  Load load() const;

  std::size_t live_count() const;
  std::size_t busy_count() const;

 private:
  using Entry = std::shared_ptr<LiveSession>;

  Async<Session> own(std::string app, std::string id);
  Async<std::shared_ptr<LiveTurn>> accept(std::shared_ptr<const App> app, std::string id,
                                          TurnRequest request);
  std::shared_ptr<Feed> feed_for(const Session& session);
  void end_feed(const std::string& id, FeedEnd reason);
  Entry entry_for(Session session);
  Entry entry_of(std::string_view id) const;
  Async<void> start_first(Entry live, HangUp* hang_up);
  // Tries again to remove the row of a session that was not made.
  void drop_again(std::string id);
  Task<void> drop_later(std::string id);
  // Ends what lives here for the session, and waits until it is gone.
  Task<void> end(std::string id, TurnStop reason);
  // The same for one that is closed, and removes what it has left outside of its directory.
  Task<void> end_for_good(std::string id, std::string agent_session_id);
  Async<bool> close_row(std::string id, std::string reason, AuditEvent event,
                        std::optional<TimePoint> idle_since);
  void make_space();
  void forget(const LiveSession& quiet);

  Dependencies deps_;
  const Options options_;
  Pool pool_;
  TaskGroup tasks_;
  const LiveSessionDependencies shared_;
  std::map<std::string, Entry, std::less<>> live_;  // what runs, or has something under way
  std::map<std::string, std::weak_ptr<Feed>, std::less<>> feeds_;
  std::size_t undropped_ = 0;
  bool are_event_streams_over_ = false;
  bool is_stopping_ = false;
};

}  // namespace clawdforge
