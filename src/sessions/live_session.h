// LiveSession is a session with something under way: an agent that runs, turns, or events
// on their way to the ledger. When nothing of that is left it is forgotten; the session's
// row is enough to make another one. Shared by Sessions and its own tasks; io thread only.
//
// Turns run one after another. One task works through them while there are any; another
// listens to the agent for as long as it lives. An agent that has to end is let go of, and
// a third task waits for the end of its tree, which gives its place back.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/task_group.h"
#include "base/timer.h"
#include "quota/pool.h"
#include "sessions/live_turn.h"
#include "sessions/questions.h"
#include "sessions/session_dependencies.h"
#include "sessions/session_journal.h"

namespace clawdforge {

// Turns of one session that wait behind the one that runs.
inline constexpr std::size_t kWaitingTurnsMax = 8;
// What an agent says within this after a turn's end belongs to that turn.
inline constexpr std::chrono::seconds kLateMax{5};

class LiveSession : public std::enable_shared_from_this<LiveSession> {
 public:
  // What all live sessions share; outlives them.
  struct House {
    const SessionDependencies& deps;
    const SessionOptions& options;
    TaskGroup& tasks;
    Pool& places;
    Counter& lines_skipped;                            // of agents, because they were no message
    std::function<void()> make_room;                   // somebody waits for a place
    std::function<void(const LiveSession&)> on_quiet;  // nothing is under way any more
  };

  LiveSession(const House& house, std::shared_ptr<Feed> feed, Session session);
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  const std::string& id() const { return session_.id; }
  const Session& session() const { return session_; }
  bool is_live() const { return agent_ != nullptr; }
  bool is_busy() const { return running_ != nullptr || !waiting_.empty(); }
  bool is_ending() const { return ending_ != TurnStop::none; }
  bool is_quiet() const;
  std::size_t waiting_turns() const { return waiting_.size(); }
  std::size_t waiting_bytes() const { return journal_.waiting_bytes(); }  // of its journal
  std::size_t answer_bytes() const { return running_ ? running_->held_bytes() : 0; }

  // Starts its agent for the first time. Not for a turn: the caller bounds it by interrupt().
  Task<std::optional<Failure>> start(AuditEvent created);
  // Makes a start() under way fail soon.
  void interrupt();
  bool has_place() const { return place_ && place_->is_granted(); }

  // `turns_given` is what the row says. Errc::conflict "turn_queue_full", Errc::gone
  // "session_closed". Atomic towards the io thread.
  Result<std::shared_ptr<LiveTurn>> enqueue(TurnRequest request,
                                            std::vector<Attachment> attachments,
                                            std::int64_t turns_given);
  // The caller has hung up: a turn that waits is dropped, one that runs goes on.
  void on_caller_gone(const std::shared_ptr<LiveTurn>& turn);

  // Asks the agent to end the turn that runs. False: none does.
  bool cancel();
  Questions& questions() { return questions_; }
  // Returns when all that has happened until now is in the ledger.
  Async<void> kept() { return journal_.committed(); }
  const Questions& questions() const { return questions_; }
  // What will be told from now on has a higher number.
  std::int64_t last_event_id() const { return journal_.last_event_id(); }

  // Since when nothing has happened here; none while something does, or nothing lives.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const;
  bool can_reload_conversation() const { return can_load_; }
  std::size_t leaving() const { return leaving_; }  // agents whose places come back soon
  // Ends the agent of an idle session; its next turn wakes it.
  void sleep();

  // Takes no more turns; ends those there are. keep_going() takes it back, as long as
  // nothing but refusing has happened: see refuse_turns().
  void refuse_turns() { is_refusing_ = true; }
  void keep_going() { is_refusing_ = false; }
  void begin_end(TurnStop reason);
  // Waits until nothing is left of it.
  Task<void> ended();

 private:
  void note_deadline(const std::shared_ptr<LiveTurn>& turn);
  void stop_turn(const std::shared_ptr<LiveTurn>& turn, TurnStop reason);
  void drop_waiting(std::shared_ptr<LiveTurn> turn, TurnStop reason);
  Task<void> work();
  Task<void> run(std::shared_ptr<LiveTurn> turn);
  Task<std::optional<Failure>> prepare(std::shared_ptr<LiveTurn> turn);
  Task<std::optional<Failure>> start_agent(std::optional<AuditEvent> created);
  Task<std::optional<Failure>> take_place();
  Task<std::optional<Failure>> open_agent(std::optional<AuditEvent> created,
                                          std::shared_ptr<SessionAgent> agent);
  Task<void> await_end(std::shared_ptr<LiveTurn> turn);
  // Ends the turn and writes that down; after it, settle() answers when it is committed.
  void conclude(LiveTurn& turn, std::optional<TurnEnd> end, std::optional<Failure> failure);
  Task<void> settle(std::shared_ptr<LiveTurn> turn);
  Task<void> listen(std::shared_ptr<SessionAgent> agent);
  void on_events(std::vector<AgentEvent> events, bool is_early);
  void take_question(PermissionRequest question, std::string_view message, std::int64_t turn_index);
  void resolve(const OpenQuestion& question, const Decision& decision, std::string_view by);
  std::int64_t index_of_what_is_said() const;
  void end_agent();
  Task<void> await_exit(std::shared_ptr<SessionAgent> agent, std::unique_ptr<Slot> place);
  // None for a turn that its caller has dropped: that is no failure.
  std::optional<Failure> failure_of(TurnStop reason, const LiveTurn& turn) const;
  void note_quiet();

  const House& house_;
  const SessionDependencies& deps_;
  Session session_;
  SessionJournal journal_;
  Questions questions_;
  std::shared_ptr<SessionAgent> agent_;
  std::unique_ptr<Slot> place_;
  bool is_starting_ = false;
  SessionAgent* opening_ = nullptr;  // while it is being started
  bool is_interrupted_ = false;
  bool is_loaded_ = false;  // by the last start: the agent knows what was said before
  bool can_load_ = false;
  std::shared_ptr<LiveTurn> running_;
  std::deque<std::shared_ptr<LiveTurn>> waiting_;
  std::int64_t ended_turn_ = 0;  // the last one that the agent was asked and that is over
  std::int64_t last_turn_ = 0;   // the last one that this process has worked on
  std::chrono::steady_clock::time_point last_active_;
  bool is_working_ = false;
  bool is_refusing_ = false;
  TurnStop ending_ = TurnStop::none;
  std::size_t leaving_ = 0;  // agents whose trees are not gone yet
  Timer quiet_;              // cancelled when something has come to its end
};

}  // namespace clawdforge
