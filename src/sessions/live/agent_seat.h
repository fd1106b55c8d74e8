// AgentSeat is where a session's agent sits. It takes a slot of the pool, starts the agent's
// process, opens the conversation, listens for as long as the agent lives, and ends it. The
// slot is given back when nothing of the process tree is left. Member of a LiveSession, which
// its tasks keep alive; io thread only.
//
// A seat has one state: see sessions/live/seat_state.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/core/session_agent.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "quota/ticket.h"
#include "sessions/live/seat_state.h"
#include "sessions/live/session_dependencies.h"

namespace clawdforge {

// What a seat tells the session that it belongs to.
class SeatOwner : public std::enable_shared_from_this<SeatOwner> {
 public:
  // The agent is ready and has said something.
  virtual void on_news(AgentNews news) = 0;
  // The agent is ready and has died, or a part of what it said is lost for want of memory: end
  // it. Nothing more comes from it.
  virtual void on_death(Failure why, bool has_lost_words) = 0;
  // Returns when the session can take more of what the agent says.
  virtual Task<void> wait_for_space() = 0;
  // Nothing is left of an agent that has ended.
  virtual void on_vacated() = 0;
  // The session is closed: its conversation will never be loaded again.
  virtual bool is_closed() const = 0;

 protected:
  ~SeatOwner() = default;
};

// What an agent keeps from its start to its end: with other terms it has to be started again.
struct AgentTerms {
  PermissionMode permission_mode = PermissionMode::deny_all;
  std::string schema{};  // of its answers, for an agent that takes one; empty: none

  bool operator==(const AgentTerms&) const = default;
};

class AgentSeat {
 public:
  // All outlives the seat. `session` is the owner's row.
  AgentSeat(SeatOwner& owner, const LiveSessionDependencies& shared, const Session& session);
  AgentSeat(const AgentSeat&) = delete;
  AgentSeat& operator=(const AgentSeat&) = delete;

  SeatState state() const { return state_; }
  bool is_leaving() const;  // its slot comes back soon
  bool has_slot() const { return ticket_ && ticket_->has_place(); }
  // Null unless it is ready.
  SessionAgent* agent() const { return state_ == SeatState::ready ? agent_.get() : nullptr; }
  // What the last conversation said when it was opened.
  const Opened& opened() const { return opened_; }

  // The seat becomes ready, or the reason why not, with the last words of an agent that did not
  // open: Errc::unavailable "queue_full",
  // "queue_timeout" when it was interrupted, "agent_not_found", what the directory, the agent
  // or the ledger says. One call at a time, and only while there is no agent. `is_unasked`:
  // nothing has been said in the conversation yet. `created` is for the audit.
  Task<std::optional<Failure>> start(AgentTerms terms, bool is_unasked,
                                     std::optional<SessionCreated> created);
  // What the agent was started with last.
  const AgentTerms& terms() const { return terms_; }
  // Makes a start() under way fail soon.
  void interrupt();
  // Ends the agent, if it is ready.
  void end();

 private:
  void move_to(SeatState state);
  Task<std::optional<Failure>> take_slot();
  Task<std::optional<Failure>> start_process(bool is_unasked);
  Task<std::optional<Failure>> open(bool is_unasked, std::optional<SessionCreated> created);
  Conversation conversation(bool is_unasked) const;
  // After a start that failed: back to empty, or to leaving if there is a process.
  void give_up();
  void let_go();
  Task<void> listen(std::shared_ptr<SessionAgent> agent);
  Task<void> await_exit(std::shared_ptr<SessionAgent> agent);

  SeatOwner& owner_;
  const LiveSessionDependencies& shared_;
  const SessionDependencies& deps_;
  const Session& session_;
  SeatState state_ = SeatState::empty;
  AgentTerms terms_;
  std::optional<Ticket> ticket_;         // for its slot; from queued to leaving
  std::shared_ptr<SessionAgent> agent_;  // while it opens or is ready; await_exit() has it then
  Opened opened_;
  Signal changed_;  // the state
};

}  // namespace clawdforge
