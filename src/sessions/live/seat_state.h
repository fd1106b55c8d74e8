// SeatState says how far a session's agent is, from none to one that takes turns and back. It
// is all the state that an AgentSeat has: AgentSeat::move_to() is the only function that
// changes it, and asserts that the change is a row of this table. docs/architecture.md shows
// the same table.
//
//   from       to         when
//   empty      queued     a start is asked for
//   leaving    replacing  a start is asked for, and the tree of the last agent is not gone yet
//   replacing  queued     that tree is gone
//   replacing  leaving    the start is interrupted
//   queued     starting   the pool grants a slot
//   queued     empty      the pool refuses one: too many wait
//   queued     aborting   the start is interrupted
//   starting   opening    the process runs
//   starting   empty      there is no directory, no program or no process
//   starting   aborting   the start is interrupted
//   opening    ready      the conversation is open, and the session's row names the process
//   opening    leaving    the agent or the ledger failed
//   opening    aborting   the start is interrupted
//   aborting   empty      the start sees it, and has no process yet
//   aborting   leaving    the start sees it, and has one
//   ready      leaving    the agent died, is put to sleep, or its session ends
//   leaving    empty      nothing of the tree is left, and the slot is given back
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace clawdforge {

enum class SeatState {
  empty,      // no agent, no slot
  queued,     // a start waits for a slot
  starting,   // a start has a slot and no process yet
  opening,    // the process runs; its conversation is being opened
  ready,      // the agent takes turns
  aborting,   // a start was interrupted and has not noticed yet
  leaving,    // the agent was told to end; its tree still has the slot
  replacing,  // the same, and a start waits for it: two processes must not share a directory
};

struct SeatTransition {
  SeatState from;
  SeatState to;
  auto operator<=>(const SeatTransition&) const = default;
};

inline constexpr std::array kSeatTransitions = {
    SeatTransition{SeatState::empty, SeatState::queued},
    SeatTransition{SeatState::leaving, SeatState::replacing},
    SeatTransition{SeatState::replacing, SeatState::queued},
    SeatTransition{SeatState::replacing, SeatState::leaving},
    SeatTransition{SeatState::queued, SeatState::starting},
    SeatTransition{SeatState::queued, SeatState::empty},
    SeatTransition{SeatState::queued, SeatState::aborting},
    SeatTransition{SeatState::starting, SeatState::opening},
    SeatTransition{SeatState::starting, SeatState::empty},
    SeatTransition{SeatState::starting, SeatState::aborting},
    SeatTransition{SeatState::opening, SeatState::ready},
    SeatTransition{SeatState::opening, SeatState::leaving},
    SeatTransition{SeatState::opening, SeatState::aborting},
    SeatTransition{SeatState::aborting, SeatState::empty},
    SeatTransition{SeatState::aborting, SeatState::leaving},
    SeatTransition{SeatState::ready, SeatState::leaving},
    SeatTransition{SeatState::leaving, SeatState::empty},
};

constexpr bool is_in_table(SeatTransition transition) {
  return std::ranges::find(kSeatTransitions, transition) != kSeatTransitions.end();
}

constexpr std::string_view name_of(SeatState state) {
  switch (state) {
    case SeatState::empty:
      return "empty";
    case SeatState::queued:
      return "queued";
    case SeatState::starting:
      return "starting";
    case SeatState::opening:
      return "opening";
    case SeatState::ready:
      return "ready";
    case SeatState::aborting:
      return "aborting";
    case SeatState::leaving:
      return "leaving";
    case SeatState::replacing:
      return "replacing";
  }
  return "";
}

}  // namespace clawdforge
