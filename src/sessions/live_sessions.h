// LiveSessions has every session that has something under way, and puts
// idle agents to sleep when others need their slots. Member of Sessions; io thread only. Its owner
// calls stop() and waits for it before it dies.
//
// More sessions may be open than agents may live. When a start waits for a slot, the agent that
// has been idle for longest is put to sleep; its session wakes it at the next turn. So is one that
// has not been used for long.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async/async.h"
#include "base/async/task_group.h"
#include "sessions/journal/feeds.h"
#include "sessions/live/live_session.h"
#include "sessions/live/session_dependencies.h"

namespace clawdforge {

class LiveSessions {
 public:
  // What waits in memory, over all of them.
  struct Load {
    std::size_t turns_waiting = 0;
    std::size_t questions_open = 0;
    std::size_t answer_bytes = 0;   // gathered for answers
    std::size_t journal_bytes = 0;  // on their way to the ledger
  };

  // All outlives it.
  LiveSessions(const SessionDependencies& deps, const SessionOptions& options, Feeds& feeds,
               ByteTally& journal_space);
  LiveSessions(const LiveSessions&) = delete;
  LiveSessions& operator=(const LiveSessions&) = delete;

  // Null: nothing of it is under way.
  std::shared_ptr<LiveSession> find(const SessionId& id) const;
  // The one there is, or a new one from its row.
  std::shared_ptr<LiveSession> find_or_add(Session session);
  void each(const std::function<void(const LiveSession&)>& look) const {
    for (const auto& [id, session] : sessions_) look(*session);
  }
  // Forgets those that have nothing under way any more.
  void forget_quiet();
  // Those with an agent or with turns. One that is being made is left out: its row is new.
  std::vector<SessionId> ids_at_work() const;

  // Ends what the session has under way, and waits until nothing of it is left.
  Task<void> end(SessionId id, TurnStop reason);
  // The same for all of them; from then on is_stopping().
  Task<void> stop();
  bool is_stopping() const { return is_stopping_; }

  std::size_t live_count() const;
  std::size_t busy_count() const;
  Load load() const;
  TaskGroup& tasks() { return tasks_; }
  // Puts those to sleep that have been idle for as long as the options say, and that can load their
  // conversation again. Called now and then.
  void sleep_idle();
  // The same for those that have been idle for longest, until their agents have given back so many
  // bytes, or none is left. Gives how many they give back.
  std::uint64_t sleep_for_memory(std::uint64_t bytes);
  // What its agent takes; 0: it has none.
  std::uint64_t memory_of(const SessionId& id) const;
  // For tests: told of each change of a seat's state.
  void on_seat_change(std::function<void(SeatTransition)> observer);

 private:
  using Entry = std::shared_ptr<LiveSession>;

  Entry idlest(bool must_reload) const;
  void make_space();
  void forget(const LiveSession& quiet);

  Quota& quota_;
  Feeds& feeds_;
  Counter& slept_for_others_;
  Counter& slept_unused_;
  Counter& slept_for_memory_;
  TaskGroup tasks_;
  LiveSessionDependencies shared_;
  std::map<SessionId, Entry> sessions_;
  bool is_stopping_ = false;
};

}  // namespace clawdforge
