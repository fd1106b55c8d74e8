// Sessions does what /sessions asks: conversations of many turns, each with a live agent. The
// ledger's rows decide what is open and whose it is; memory only knows what lives and what is
// under way. A turn belongs to its session, not to the connection that asked for it. Io thread
// only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/ask_gate.h"
#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "model/app.h"
#include "sessions/session_records.h"
#include "transcript/open_question.h"
#include "transcript/turn_outcome.h"
#include "transcript/turn_request.h"

namespace clawdforge {

class ByteTally;
class Feeds;
class LiveSession;
class LiveSessions;

// An open question, and whose it is.
struct AskedQuestion {
  SessionId session_id;
  AppName app;
  std::string agent;
  std::string meta;  // of the session
  OpenQuestion question;
};
class LiveTurn;
class SessionCloser;
class WorkFileReader;
struct SessionDependencies;
struct SessionOptions;
class WorkArchive;
class WorkPut;
struct ChangedFile;
struct Committed;
struct ForkSource;
struct WorkDiff;
struct WorkListing;

class Sessions {
 public:
  using Dependencies = SessionDependencies;
  using Options = SessionOptions;

  Sessions(Dependencies dependencies, Options options);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // Errc::forbidden where the app's policy says no; Errc::invalid "unknown_agent";
  // Errc::unavailable "pool_full", "agent_not_found", "agent_not_logged_in", "queue_timeout";
  // Errc::over_quota "too_many_sessions", "journal_quota_full"; Errc::agent_failed;
  // Errc::timed_out. An error leaves no session. `hang_up` undoes it.
  Async<Session> create(std::shared_ptr<const App> app, SessionRequest request, HangUp* hang_up);

  // An outcome once the turn has an index; it is settled in the ledger by then. An error
  // before that: Errc::not_found "session_not_found" or "file_not_found", Errc::gone
  // "session_closed", Errc::forbidden where the app's policy has become narrower, Errc::conflict
  // "turn_queue_full", Errc::unavailable. `hang_up` drops a turn that waits; one that runs goes on.
  // With a `gate` the time of the turn counts from when that has let it through, and `hang_up`
  // also cancels a turn that runs.
  Async<TurnOutcome> turn(std::shared_ptr<const App> app, SessionId id, TurnRequest request,
                          HangUp* hang_up, std::shared_ptr<AskGate> gate = nullptr);
  // What turn() would refuse whatever is under way: for want of the session or of a file, or by
  // the app's policy.
  Async<void> check(std::shared_ptr<const App> app, SessionId id, TurnRequest request);

  // The same, to be watched: the turn is accepted, and its events come from the reader.
  Async<TurnStream> stream_turn(std::shared_ptr<const App> app, SessionId id, TurnRequest request);

  // Errc::not_found "session_not_found", also for another app's; so do all below.
  Async<SessionView> find(AppName app, SessionId id);
  // A row of a list, with what memory knows of it.
  SessionView view_of(Session session) const;
  // As LiveSessions::memory_of().
  std::uint64_t memory_of(const SessionId& id) const;

  // Ends the turns, the agent and the session. True: it was open. Returns when the agent's
  // tree is gone.
  Async<bool> close(AppName app, SessionId id);
  // Asks the agent to end the turn that runs; the others go on. False: none runs.
  // Errc::gone "session_closed".
  Async<bool> cancel(AppName app, SessionId id);

  // What has been told after event `after`. Errc::invalid "validation_failed" when that is
  // beyond the newest. `with_open_turn`: from the beginning of the oldest turn on that was under
  // way then, if there was one.
  Async<std::unique_ptr<EventReader>> read_events(AppName app, SessionId id, std::int64_t after,
                                                  bool with_open_turn = false);
  // As JournalRows::turns().
  Async<TurnPage> turns(AppName app, SessionId id, std::int64_t after, std::int64_t limit);
  // Each reader looks again whether its caller may still read.
  void recheck_readers();
  // Those who read on for what may come are told that nothing does, from now on at once.
  void end_event_streams();

  Async<std::vector<OpenQuestion>> questions(AppName app, SessionId id);
  // Of all sessions of the app, or of all apps; the one that expires first comes first. Memory
  // alone is asked.
  std::vector<AskedQuestion> open_questions(const std::optional<AppName>& app) const;
  // As Questions::answer().
  Async<void> answer(AppName app, SessionId id, std::string question_id, PermissionChoice choice);

  Async<WorkListing> files(AppName app, SessionId id);
  Async<std::unique_ptr<WorkFileReader>> open_file(AppName app, SessionId id, std::string path);

  // session_work.cc: against the session's beginning; errors as in Workspaces.
  Async<WorkDiff> diff(AppName app, SessionId id);
  Async<std::vector<ChangedFile>> changed_files(AppName app, SessionId id);
  Async<Committed> commit(AppName app, SessionId id, std::string message);
  Async<std::unique_ptr<WorkArchive>> archive(AppName app, SessionId id);
  // Errc::conflict "workspace_read_only"; Errc::gone "session_closed".
  Async<std::unique_ptr<WorkPut>> put_file(AppName app, SessionId id, std::string path);
  // As close(), and the session's branch stays with all that is in its worktree. Errc::invalid
  // "not_a_worktree".
  Async<bool> close_and_keep(AppName app, SessionId id);

  // For what ends sessions without being asked by an app: the sweeper and the watch.
  SessionCloser& closer() { return closer_; }
  LiveSessions& live() { return live_; }
  // Interrupts all turns and waits until no agent is left.
  Task<void> stop();

  // As LiveSessions::sleep_idle().
  void sleep_idle();
  std::uint64_t sleep_for_memory(std::uint64_t bytes);

  // Counts in the ledger what each app's sessions keep; at start and now and then.
  Async<void> count_stored();
  SessionLoad load() const;
  std::size_t live_count() const;
  std::size_t busy_count() const;

 private:
  Async<Session> own(AppName app, SessionId id);
  std::string work_of(const Session& session) const;
  Async<Session> own_for_turn(std::shared_ptr<const App> app, SessionId id);
  Result<void> check_for_turn(const App& app, const Session& session) const;
  Result<void> check_enqueue(const App& app, const Session& session) const;
  Async<std::optional<Session>> row_for_turn(std::shared_ptr<const App> app, SessionId id);
  Async<std::shared_ptr<LiveTurn>> accept(std::shared_ptr<const App> app, SessionId id,
                                          TurnRequest request, HangUp* hang_up,
                                          std::shared_ptr<AskGate> gate = nullptr);
  Result<void> check_space(const App& app) const;
  Result<void> check_policy(const Policy& policy, const Session& session) const;
  Result<void> check_line(const TurnRequest& request, const Session& session) const;
  Result<Session> new_session(const App& app, SessionRequest request);
  Async<std::shared_ptr<const ForkSource>> fork_source(AppName app, SessionRequest* request);
  Async<void> start_first(std::shared_ptr<LiveSession> live,
                          std::shared_ptr<const ForkSource> source, std::optional<KeyWrite> key,
                          HangUp* hang_up);

  // Owns what the references below name, so that this header shows none of it to the API.
  struct Parts;
  const std::unique_ptr<Parts> parts_;
  const Dependencies& deps_;
  const Options& options_;
  Feeds& feeds_;
  ByteTally& journal_space_;
  LiveSessions& live_;
  SessionCloser& closer_;
};

}  // namespace clawdforge
