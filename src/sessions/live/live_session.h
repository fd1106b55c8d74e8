// LiveSession is a session with something under way: an agent that runs, turns, or events
// on their way to the ledger. When nothing of that is left it is forgotten; the session's
// row is enough to make another one. Shared by Sessions and its own tasks; io thread only.
//
// It joins four parts: the TurnQueue has the turns, the AgentSeat has the agent, the
// SessionJournal has what happened, Questions has what the agent asked. One task goes through
// the turns while there are any; the seat's own tasks listen to the agent and wait for its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "sessions/journal/session_journal.h"
#include "sessions/live/agent_seat.h"
#include "sessions/live/live_turn.h"
#include "sessions/live/questions.h"
#include "sessions/live/session_dependencies.h"
#include "sessions/live/turn_queue.h"

namespace clawdforge {

class LiveSession final : public SeatOwner {
 public:
  // `shared` outlives it.
  LiveSession(const LiveSessionDependencies& shared, std::shared_ptr<Feed> feed, Session session);
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  const SessionId& id() const { return session_.id; }
  const Session& session() const { return session_; }
  const AgentSeat& seat() const { return seat_; }
  const TurnQueue& turns() const { return turns_; }
  const SessionJournal& journal() const { return journal_; }
  // As its agent told last.
  const std::optional<ContextUse>& context() const { return context_; }
  Questions& questions() { return questions_; }
  const Questions& questions() const { return questions_; }

  // Its row was read after this mark of SessionRows::foreign_mark().
  void note_row_read(std::optional<std::uint64_t> mark) { row_mark_ = mark; }
  // Whether session() is what its row says.
  bool is_row_known() const {
    return row_mark_ && row_mark_ == shared_.services.rows.foreign_mark();
  }

  bool is_live() const { return seat_.agent() != nullptr; }
  bool is_busy() const { return turns_.is_busy(); }
  bool is_ending() const { return ending_ != TurnStop::none; }
  bool is_quiet() const;
  // Since when nothing has happened here; none while something does, or nothing lives.
  // What the agent says by itself counts as well.
  std::optional<std::chrono::steady_clock::time_point> idle_since() const;
  bool can_reload_conversation() const { return seat_.opened().can_load; }

  // Makes what its agent works on, before start(). Until one of them has failed, or start() has
  // ended, turns wait.
  Task<std::optional<Failure>> make_workspace(std::shared_ptr<const ForkSource> source);
  // Starts its agent for the first time. Not for a turn: the caller bounds it by interrupt().
  Task<std::optional<Failure>> start(SessionCreated created);
  // Makes a start() under way fail soon.
  void interrupt() { seat_.interrupt(); }

  // As TurnQueue::accept(), and Errc::gone "session_closed".
  Result<std::shared_ptr<LiveTurn>> enqueue(TurnRequest request,
                                            std::vector<Attachment> attachments,
                                            std::int64_t turns_given,
                                            std::shared_ptr<AskGate> gate = nullptr);
  // As TurnQueue::answer().
  Async<TurnOutcome> answer(std::shared_ptr<LiveTurn> turn) {
    return turns_.answer(std::move(turn));
  }
  // The caller has hung up: a turn that waits is dropped, one that runs goes on.
  void on_caller_gone(const std::shared_ptr<LiveTurn>& turn);
  // Asks the agent to end the turn that runs. False: none does.
  bool cancel();
  // Returns when all that has happened until now is in the ledger.
  Async<void> committed() { return journal_.committed(); }

  // Ends the agent of an idle session; its next turn wakes it.
  void sleep() { end_agent(); }
  // Takes no more turns, until accept_turns() was called as often as this.
  void refuse_turns() { ++refusals_; }
  void accept_turns() { --refusals_; }
  // Takes no more turns, for good; ends those there are, and the agent.
  void begin_end(TurnStop reason);
  // Waits until nothing is left of it.
  Task<void> ended();

 private:
  // SeatOwner
  void on_news(AgentNews news) override;
  void on_death(Failure why, bool has_lost_words) override;
  Task<void> wait_for_space() override { return journal_.wait_for_space(); }
  void on_vacated() override { note_quiet(); }
  bool is_closed() const override { return ending_ == TurnStop::closed; }

  // live_session_work.cc: what it works on.
  Task<std::optional<Failure>> make_its_workspace(std::shared_ptr<const ForkSource> source);
  DirectTurns::Hold join_line();

  // live_session_turns.cc: one turn after the other.
  Task<void> work();
  void end_work();
  Task<void> run(std::shared_ptr<LiveTurn> turn);
  Task<std::optional<Failure>> prepare(std::shared_ptr<LiveTurn> turn);
  Task<std::optional<Failure>> start_agent(std::optional<SessionCreated> created);
  bool has_schema_agent() const;
  AgentTerms terms_of(const LiveTurn* turn) const;  // null: of a start without a turn
  std::optional<Failure> ask(LiveTurn& turn);
  Task<void> await_end(std::shared_ptr<LiveTurn> turn);
  void conclude(LiveTurn& turn, std::optional<TurnEnd> end, std::optional<Failure> failure);
  Task<void> settle(std::shared_ptr<LiveTurn> turn);
  void start_deadline(const std::shared_ptr<LiveTurn>& turn);
  void on_deadline(const std::shared_ptr<LiveTurn>& turn);
  void stop_turn(LiveTurn& turn, TurnStop reason);
  bool drop(std::shared_ptr<LiveTurn> turn, TurnStop reason);

  // live_session_events.cc: what the agent says. False: it has lost its conversation.
  bool take_event(AgentEvent event, bool is_early);
  void take_question(PermissionRequest question, std::string_view message, std::int64_t turn_index);
  void tell_question(const OpenQuestion& open);
  void resolve(const OpenQuestion& question, const Decision& decision, std::string_view by);

  void end_agent();
  void note_quiet();

  const LiveSessionDependencies& shared_;
  const SessionDependencies& deps_;
  Session session_;
  SessionJournal journal_;
  TurnQueue turns_;
  AgentSeat seat_;
  Questions questions_;
  bool is_working_ = false;                           // work() or start() is under way
  std::chrono::steady_clock::time_point last_heard_;  // from the agent
  int refusals_ = 0;
  std::optional<std::uint64_t> row_mark_;
  std::optional<ContextUse> context_;
  TurnStop ending_ = TurnStop::none;
  Signal rested_;  // something has come to its end
};

}  // namespace clawdforge
